#include "shim/stats.h"
#include "shim/log.h"
void lift_stats_publish(const struct lift_stats *s)
{ lift_log(LIFT_LOG_INFO, "stats state=%lu sampler=%s reason=%s passes=%lu slow=%lu fast=%lu promoted=%lu demoted=%lu share=%lu cpu=%lu fault=%lu period=%lu sample=%lu wanted=%lu hint=%lu armed=%lu",
 s->state, s->sampler, s->reason, s->passes, s->slow_bytes, s->fast_bytes, s->pgpromote_success, s->pgdemote, s->fast_share, s->worker_cpu_ns, s->fault_est_ns, s->period_ns, s->sample_ns, s->wanted, s->numa_hint_faults, s->numa_pte_updates); }
