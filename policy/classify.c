#include "policy/classify.h"

const char *lift_class_name(enum lift_class cls)
{
	switch (cls) {
	case LIFT_CLASS_SLAB:
		return "slab";
	case LIFT_CLASS_ANON:
		return "anon";
	case LIFT_CLASS_FILE:
		return "file";
	case LIFT_CLASS_MAX:
		break;
	}
	return "?";
}

enum lift_class lift_classify(const struct lift_request *req)
{
	switch (req->origin) {
	case LIFT_ORIGIN_HEAP:
		return req->bytes < LIFT_LARGE_BYTES ? LIFT_CLASS_SLAB : LIFT_CLASS_ANON;
	case LIFT_ORIGIN_MMAP_ANON_PRIVATE:
	case LIFT_ORIGIN_MMAP_ANON_SHARED:
	case LIFT_ORIGIN_SYSV_SHM:
		return LIFT_CLASS_ANON;
	case LIFT_ORIGIN_MMAP_TMPFS_SHARED:
	case LIFT_ORIGIN_MMAP_HUGETLB_FILE:
	case LIFT_ORIGIN_MMAP_FILE_SHARED:
	case LIFT_ORIGIN_MMAP_FILE_PRIVATE:
		return LIFT_CLASS_FILE;
	case LIFT_ORIGIN_MAX:
		break;
	}
	return LIFT_CLASS_ANON;
}
