#include "base/cpulist.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

bool
np_cpulist_has(const struct np_cpulist *l, unsigned cpu)
{
	return CPU_ISSET_S(cpu, sizeof(l->set), l->set);
}

unsigned
np_cpulist_first(const struct np_cpulist *l)
{
	unsigned cpu = 0;

	while (cpu + 1 < NP_CPULIST_MOST && !np_cpulist_has(l, cpu)) {
		cpu++;
	}
	return cpu;
}

/* Read a number of up to four digits. Returns what follows; NULL, *n 0: none, or more digits. */
static const char *
take_number(const char *text, unsigned *n)
{
	size_t digits = strspn(text, "0123456789");
	bool fits = digits > 0 && digits <= 4;

	*n = fits ? (unsigned)strtoul(text, NULL, 10) : 0;
	return fits ? text + digits : NULL;
}

/* Read "3", "0-3" or "0-6:2". Returns the text after it; NULL: it is none of these. */
static const char *
take_range(const char *text, unsigned *first, unsigned *last, unsigned *step)
{
	text = take_number(text, first);
	*last = *first;
	*step = 1;
	if (text == NULL || *text != '-') {
		return text;
	}
	text = take_number(text + 1, last);
	if (text == NULL || *first > *last) {
		return NULL;
	}
	if (*text == ':') {
		text = take_number(text + 1, step);
	}
	return *step > 0 ? text : NULL;
}

bool
np_cpulist_add(struct np_cpulist *l, const char *text)
{
	for (;; text++) {
		unsigned first, last, step;

		text = take_range(text, &first, &last, &step);
		if (text == NULL || last >= NP_CPULIST_MOST) {
			return false;
		}
		for (unsigned cpu = first; cpu <= last; cpu += step) {
			CPU_SET_S(cpu, sizeof(l->set), l->set);
		}
		if (*text != ',') {
			return *text == '\0';
		}
	}
}

char *
np_cpulist_text(const struct np_cpulist *l, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned cpu = 0; cpu < NP_CPULIST_MOST; cpu++) {
		unsigned last = cpu;

		if (!np_cpulist_has(l, cpu)) {
			continue;
		}
		while (np_cpulist_has(l, last + 1)) {
			last++;
		}
		len = np_text_add(out, size, len, last > cpu ? "%s%u-%u" : "%s%u",
				  len > 0 ? "," : "", cpu, last);
		cpu = last;
	}
	return out;
}

const char *
np_cpu_turns_parse(struct np_cpu_turns *t, const char *text)
{
	static const char *const no_list = "not a list of processors (try 0-3, 0+4 or 0-6:2)";
	struct np_cpu_turns read = { .count = 0 };

	t->count = 0;
	for (;; text++) {
		unsigned first = 0, last = 0, step = 1;

		text = take_range(text, &first, &last, &step);
		if (text == NULL || (*text != '+' && *text != '\0')) {
			return no_list;
		}
		if (last >= NP_CPULIST_MOST) {
			return "a list with a processor beyond 8191";
		}
		for (unsigned cpu = first; cpu <= last; cpu += step) {
			if (read.count == NP_CPU_TURNS) {
				return "a list of more than 1024 processors";
			}
			read.cpu[read.count++] = (uint16_t)cpu;
		}
		if (*text == '\0') {
			*t = read;
			return NULL;
		}
	}
}

bool
np_cpu_turns_text(const struct np_cpu_turns *t, char *out, size_t size)
{
	size_t len = 0;
	uint32_t run;

	out[0] = '\0';
	for (uint32_t i = 0; i < t->count; i += run) {
		const char *plus = len > 0 ? "+" : "";
		size_t before = len;
		int step = i + 1 < t->count ? t->cpu[i + 1] - t->cpu[i] : 0;

		/* How many numbers, from the i-th on, have the same step between them. */
		run = 1;
		while (step > 0 && i + run < t->count &&
		       t->cpu[i + run] - t->cpu[i + run - 1] == step) {
			run++;
		}
		run = step > 1 && run < 3 ? 1 : run; /* "0+4" is shorter than "0-4:4" */
		len = np_text_add(out, size, len,
				  run == 1    ? "%s%d"
				  : step == 1 ? "%s%d-%d"
					      : "%s%d-%d:%d",
				  plus, t->cpu[i], t->cpu[i + run - 1], step);
		if (len == before) { /* no room */
			out[0] = '\0';
			return false;
		}
	}
	return true;
}

int
np_cpu_turn(const struct np_cpu_turns *t, uint32_t i)
{
	return t->count > 0 ? t->cpu[i % t->count] : -1;
}

void
np_cpu_turns_begin(struct np_cpu_turns *t, uint32_t i)
{
	struct np_cpu_turns was = *t;

	for (uint32_t k = 0; k < t->count; k++) {
		t->cpu[k] = was.cpu[(i + k) % t->count];
	}
}
