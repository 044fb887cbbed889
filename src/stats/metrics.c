/* In a file by itself: what reads the table costs gcc's analyzer seconds where it sees all rows. */
#include "stats/record.h"

const struct np_metric np_metrics[NP_METRICS] = {
#define NP_FIGURE(of, nr, id, t, fmt, g, c, h1, h2, h3, h4, s, u, ...)                             \
	{ .name = #id,                                                                             \
	  .type = NP_TYPE_##t,                                                                     \
	  .print = (fmt),                                                                          \
	  .group = (g),                                                                            \
	  .collect = NP_COLLECT_##c,                                                               \
	  .head = { h1, h2, h3, h4 },                                                              \
	  .end = NP_METRIC_##of,                                                                   \
	  .block = (nr),                                                                           \
	  .subject = NP_SUBJECT_##s,                                                               \
	  .unit = (u),                                                                             \
	  __VA_ARGS__ },
#include "stats/metrics.def"
};
