/*
 * Writes the tables of messages into doc/protocol.md, from standard input to standard output: what
 * stands between two marks is replaced by what messages.def or plan.def says.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/msg.h"
#include "wire/plan.h"

/* The table that is being written. */
struct table {
	bool shown;
	size_t at; /* offset of the next field */
};

static void
begin(struct table *t, const char *title)
{
	t->shown = title[0] != '\0';
	t->at = 8;
	if (t->shown) {
		printf("\n### %s\n\n| offset | bytes | type | field |\n|---:|---:|---|---|\n",
		       title);
	}
}

static void
row(struct table *t, size_t bytes, const char *type, const char *name, const char *note)
{
	if (t->shown) {
		printf("| %zu | %zu | %s | %s%s%s |\n", t->at, bytes, type, name,
		       note[0] != '\0' ? ": " : "", note);
	}
	t->at += bytes;
}

static void
end(const struct table *t)
{
	if (t->shown) {
		printf("\nEnds at %zu.\n", t->at);
	}
}

static void
write_tables(void)
{
	struct table t;

#define NP_MESSAGE(layout, type, title) begin(&t, title);
#define NP_ORDER(layout, type, title) begin(&t, title);
#define NP_I32(name, note) row(&t, 4, "i32", #name, note);
#define NP_U32(name, note) row(&t, 4, "u32", #name, note);
#define NP_U64(name, note) row(&t, 8, "u64", #name, note);
#define NP_F32(name, note) row(&t, 4, "f32", #name, note);
#define NP_F64(name, note) row(&t, 8, "f64", #name, note);
#define NP_TEXT(name, bytes, note) row(&t, bytes, "text", #name, note);
#define NP_TEXT4(name, bytes, note) row(&t, bytes, "text4", #name, note);
#define NP_BYTES(name, bytes, note) row(&t, bytes, "bytes", #name, note);
#define NP_WORDS(name, count, note)                                                                \
	row(&t, sizeof(uint32_t) * (count), #count " words", #name, note);
#define NP_SKIP(bytes, names) row(&t, bytes, "-", "(" names ")", "");
#define NP_END end(&t);
#include "wire/messages.def"
	putchar('\n');
}

/* Numbers that stand for "as many as there can be" have no use for their digits. */
static void
bound(int64_t v)
{
	switch (v) {
	case INT64_MAX:
		fputs("2^63 - 1", stdout);
		break;
	case -INT64_MAX:
		fputs("-2^63 + 1", stdout);
		break;
	case INT32_MAX:
		fputs("2^31 - 1", stdout);
		break;
	case UINT32_MAX:
		fputs("2^32 - 1", stdout);
		break;
	default:
		printf("%lld", (long long)v);
	}
}

static void
number(unsigned tag, const char *type, const char *name, int64_t least, int64_t most,
       int64_t absent, const char *note)
{
	printf("| %u | %s | ", tag, type);
	bound(least);
	fputs(" to ", stdout);
	bound(most);
	printf(" | %lld | %s%s%s |\n", (long long)absent, name, note[0] != '\0' ? ": " : "", note);
}

static void
several(unsigned tag, const char *type, unsigned most, const char *unit, const char *name,
	const char *note)
{
	printf("| %u | %s | up to %u%s | none | %s: %s |\n", tag, type, most, unit, name, note);
}

static void
write_plans(void)
{
#define NP_T_MESSAGE(message, code, title)                                                         \
	fputs("\n### " title                                                                       \
	      "\n\n| tag | type | values | absent | field |\n|---:|---|---|---|---|\n",            \
	      stdout);
#define NP_T_U32(message, tag, name, least, most, absent, note)                                    \
	number(tag, "u32", #name, least, most, absent, note);
#define NP_T_I32(message, tag, name, least, most, absent, note)                                    \
	number(tag, "i32", #name, least, most, absent, note);
#define NP_T_I64(message, tag, name, least, most, absent, note)                                    \
	number(tag, "i64", #name, least, most, absent, note);
#define NP_T_U64(message, tag, name, note)                                                         \
	printf("| %u | u64 | any | 0 | %s: %s |\n", tag, #name, note);
#define NP_T_F64(message, tag, name, least, most, absent, note)                                    \
	number(tag, "f64", #name, least, most, absent, note);
#define NP_T_TEXT(message, tag, name, room, note)                                                  \
	several(tag, "text", (room)-1, " bytes", #name, note);
#define NP_T_BYTES(message, tag, name, room, note) several(tag, "bytes", room, "", #name, note);
#define NP_T_LIST(message, tag, name, room, note)                                                  \
	several(tag, "list of u32", room, "", #name, note);
#include "wire/plan.def"
	putchar('\n');
}

/* What is written between which lines. */
static const struct {
	const char *begin, *end;
	void (*write)(void);
} places[] = {
	{ "<!-- messages.def: begin -->\n", "<!-- messages.def: end -->\n", write_tables },
	{ "<!-- plan.def: begin -->\n", "<!-- plan.def: end -->\n", write_plans },
};
enum { PLACES = sizeof(places) / sizeof(places[0]) };

int
main(void)
{
	size_t place = 0; /* the one that comes, or that this is in */
	bool within = false;
	char line[4096];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (within && strcmp(line, places[place].end) == 0) {
			within = false;
			place++;
		}
		if (!within) {
			fputs(line, stdout);
		}
		if (place < PLACES && strcmp(line, places[place].begin) == 0) {
			places[place].write();
			within = true;
		}
	}
	if (place < PLACES) {
		fprintf(stderr, "mkdoc: no place for the messages: %s",
			within ? places[place].end : places[place].begin);
		return 1;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
