#include "sys/cpu.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"

/* The columns of a line, and how many of them every kernel has had. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, GUEST, GUEST_NICE, COLUMNS };
enum { COLUMNS_MIN = IDLE + 1 };

struct cpu {
	int id;
	uint64_t ticks[COLUMNS];
};

struct np_cpu_times {
	size_t count;
	struct cpu cpus[]; /* by rising number */
};

/* Read digits up to a blank or the text's end, and move *at there. (strtoull() allows signs.) */
static bool
parse_number(const char **at, uint64_t *out)
{
	char *end;

	if (**at < '0' || **at > '9') {
		return false;
	}
	errno = 0;
	*out = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0 && (*end == ' ' || *end == '\0');
}

/* Read "cpu12 1 2 3 4 ...". Later kernels may add columns, which are ignored. */
static bool
parse_cpu(const char *line, struct cpu *out)
{
	const char *at = line + strlen("cpu");
	uint64_t id;
	int column = 0;

	memset(out, 0, sizeof(*out));
	if (!parse_number(&at, &id) || id > INT_MAX) {
		return false;
	}
	out->id = (int)id;
	for (;;) {
		at += strspn(at, " ");
		if (*at == '\0' || column == COLUMNS) {
			return column >= COLUMNS_MIN;
		}
		if (!parse_number(&at, &out->ticks[column++])) {
			return false;
		}
	}
}

static int
by_id(const void *a, const void *b)
{
	int x = ((const struct cpu *)a)->id, y = ((const struct cpu *)b)->id;

	return (x > y) - (x < y);
}

/* Read the lines of single processors, and skip their sum ("cpu ") and all other lines. */
static struct np_cpu_times *
parse_lines(char *text)
{
	struct np_cpu_times *t;
	size_t lines = 1;
	char *line;

	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
		lines++;
	}
	t = calloc(1, sizeof(*t) + lines * sizeof(t->cpus[0]));
	if (t == NULL) {
		return NULL;
	}
	while ((line = strsep(&text, "\n")) != NULL) {
		if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9') {
			continue;
		}
		if (!parse_cpu(line, &t->cpus[t->count++])) {
			t->count = 0;
			break;
		}
	}
	qsort(t->cpus, t->count, sizeof(t->cpus[0]), by_id);
	for (size_t i = 1; i < t->count; i++) {
		if (t->cpus[i].id == t->cpus[i - 1].id) {
			t->count = 0;
		}
	}
	if (t->count == 0) {
		free(t);
		errno = EINVAL;
		return NULL;
	}
	return t;
}

struct np_cpu_times *
np_cpu_read(const char *root)
{
	char *text = np_file_all(root, "/proc/stat");
	struct np_cpu_times *t = text != NULL ? parse_lines(text) : NULL;

	free(text);
	return t;
}

/* A counter's growth; 32-bit ones wrap. 2^31 ticks would take half a year: it went back, so 0. */
static uint64_t
moved(uint64_t from, uint64_t to)
{
	uint64_t wrapped;

	if (to >= from) {
		return to - from;
	}
	wrapped = from <= UINT32_MAX ? to + (UINT64_C(1) << 32) - from : 0;
	return wrapped < UINT64_C(1) << 31 ? wrapped : 0;
}

static const struct cpu *
find_cpu(const struct np_cpu_times *t, int id)
{
	const struct cpu wanted = { .id = id };

	return t != NULL ? bsearch(&wanted, t->cpus, t->count, sizeof(wanted), by_id) : NULL;
}

void
np_cpu_use(const struct np_cpu_times *from, const struct np_cpu_times *to, struct np_cpu_use *out)
{
	double *const sums[] = { &out->util,   &out->user, &out->system,
				 &out->iowait, &out->irq,  &out->softirq };

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < to->count; i++) {
		const struct cpu *before = find_cpu(from, to->cpus[i].id);

		if (before != NULL) {
			double share[COLUMNS], total = 0, busy;

			/* Add one processor's shares, in percent. */
			for (int c = 0; c < COLUMNS; c++) {
				share[c] = (double)moved(before->ticks[c], to->cpus[i].ticks[c]);
				total += share[c];
			}
			for (int c = 0; c < COLUMNS; c++) {
				share[c] = total > 0 ? 100 * share[c] / total : 0;
			}
			busy = total > 0 ? 100 - share[IDLE] : 0;
			if (!out->known || busy > out->peak) {
				out->peak = busy;
				out->peak_id = to->cpus[i].id;
			}
			out->known = true;
			out->count++;
			out->util += busy;
			out->user += share[USER];
			out->system += share[SYSTEM];
			out->iowait += share[IOWAIT];
			out->irq += share[IRQ];
			out->softirq += share[SOFTIRQ];
		}
	}
	for (size_t k = 0; out->known && k < sizeof(sums) / sizeof(sums[0]); k++) {
		*sums[k] /= out->count;
	}
}

bool
np_cpu_ticks(const struct np_cpu_times *from, const struct np_cpu_times *to, int cpu,
	     struct np_cpu_ticks *out)
{
	const struct cpu *a = find_cpu(from, cpu), *b = find_cpu(to, cpu);
	uint64_t ticks[STEAL + 1] = { 0 };

	*out = (struct np_cpu_ticks){ .id = cpu };
	if (a == NULL || b == NULL) {
		return false;
	}
	for (int i = 0; i <= STEAL; i++) {
		ticks[i] = moved(a->ticks[i], b->ticks[i]);
		out->all += ticks[i];
	}
	/* USER and NICE already include the guests' time (proc_stat(5)). */
	out->user = ticks[USER] + ticks[NICE];
	out->system = ticks[SYSTEM];
	out->softirq = ticks[SOFTIRQ];
	out->irq = ticks[IRQ];
	out->iowait = ticks[IOWAIT];
	out->steal = ticks[STEAL];
	out->idle = ticks[IDLE];
	return true;
}

bool
np_cpu_next(const struct np_cpu_times *from, const struct np_cpu_times *to, size_t *i,
	    struct np_cpu_ticks *out)
{
	bool found = false;

	while (!found && *i < to->count) {
		found = np_cpu_ticks(from, to, to->cpus[(*i)++].id, out);
	}
	return found;
}

double
np_cpu_stolen(const struct np_cpu_times *t)
{
	double stolen = 0, total = 0;

	for (size_t i = 0; i < t->count; i++) {
		stolen += (double)t->cpus[i].ticks[STEAL];
		for (int column = USER; column <= STEAL; column++) {
			total += (double)t->cpus[i].ticks[column];
		}
	}
	return total > 0 ? stolen / total : 0;
}

int
np_cpu_count(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (int)n : 1;
}

double
np_cpu_ticks_per_s(void)
{
	return (double)sysconf(_SC_CLK_TCK);
}

/* Read "0.20 0.18 0.12 1/80 11206": the count follows three averages. */
long
np_cpu_load(const char *root)
{
	char line[128], *end;
	long running, n = np_file_line(line, sizeof(line), root, "/proc/loadavg");
	const char *at = line;

	for (int i = 0; at != NULL && i < 3; i++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	running = at != NULL ? strtol(at, &end, 10) : 0;
	errno = n < 0 ? (int)-n : EBADMSG;
	return at != NULL && end != at ? running : -1;
}

bool
np_cpu_crowded(const char *root)
{
	enum { CROWD = 32 }; /* threads for each processor, with time slices of 3 ms */

	return np_cpu_load(root) > (long)CROWD * np_cpu_count();
}

int
np_bind_cpu(int cpu, struct np_err *err)
{
	struct np_cpulist only;

	CPU_ZERO_S(sizeof(only.set), only.set);
	/* None is set for a number below 0 or too large: EINVAL. */
	CPU_SET_S((size_t)cpu, sizeof(only.set), only.set);
	return sched_setaffinity(0, sizeof(only.set), only.set) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "bind to processor %d", cpu);
}

bool
np_cpus_save(struct np_cpulist *l)
{
	memset(l, 0, sizeof(*l));
	return sched_getaffinity(0, sizeof(l->set), l->set) == 0;
}

void
np_cpus_restore(const struct np_cpulist *l)
{
	sched_setaffinity(0, sizeof(l->set), l->set);
}

int
np_cpus_leave_out(struct np_cpu_turns *t)
{
	uint32_t kept = 0;
	int missing = -1;
	struct np_cpulist before;

	np_cpus_save(&before); /* each trial changes it */
	for (uint32_t i = 0; i < t->count; i++) {
		if (np_bind_cpu(t->cpu[i], NULL) == NP_OK) {
			t->cpu[kept++] = t->cpu[i];
		} else if (missing < 0) {
			missing = t->cpu[i];
		}
	}
	t->count = kept;
	np_cpus_restore(&before);
	return missing;
}

int
np_cpu_bound(void)
{
	struct np_cpulist may;

	return np_cpus_usable() == 1 && np_cpus_save(&may) ? (int)np_cpulist_first(&may) : -1;
}

uint32_t
np_cpus_usable(void)
{
	struct np_cpulist may;

	np_cpus_save(&may);
	return (uint32_t)CPU_COUNT_S(sizeof(may.set), may.set);
}
