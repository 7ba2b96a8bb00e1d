#ifndef X_MEAS
#define X_MEAS
#include "policy/schedule.h"
#include "shim/sampler.h"
#include "policy/memsys.h"
static inline int lift_measure_costs(const struct lift_sampler *s, const struct lift_memsys *m, int slow, int fast, struct lift_costs *c)
{ (void)m;(void)slow;(void)fast; *c=(struct lift_costs){.arm_ns=500,.release_ns=500,.scan_ns=100,.fault_ns=3000,.promote_ns=15000,.demote_ns=15000,.gap_ns=150}; if (s->traits & LIFT_SAMPLER_WHOLE) { c->whole_ns=300; c->fault_ns=0; c->arm_ns=c->release_ns=0; } return 0; }
#endif
