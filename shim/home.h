#ifndef X_HOME
#define X_HOME
struct lift_home { int x; };
static inline int lift_home_update(struct lift_home *h) { (void)h; return 0; }
static inline int lift_home_node(const struct lift_home *h) { (void)h; return -1; }
#endif
