/*
 * Fills tables from messages.def and plan.def between the marks of doc/protocol.md and the schema,
 * from stdin to stdout. The arguments name the places that the input must have, in order.
 */
#include <ctype.h>
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

/* A message begins; one without a title is not shown. */
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

/* A field, at the offset after the one before. */
static void
row(struct table *t, size_t bytes, const char *type, const char *name, const char *note)
{
	if (t->shown) {
		printf("| %zu | %zu | %c%s | %s%s%s |\n", t->at, bytes,
		       tolower((unsigned char)type[0]), type + 1, name, note[0] != '\0' ? ": " : "",
		       note);
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

/* The tables of netperf's messages. */
static void
write_tables(void)
{
	struct table t;

#define NP_MESSAGE(layout, type, title) begin(&t, title);
#define NP_ORDER(layout, type, title) begin(&t, title);
#define NP_NUMBER(type, name, note) row(&t, sizeof(NP_C_##type), #type, #name, note);
#define NP_TEXT(name, bytes, note) row(&t, bytes, "text", #name, note);
#define NP_TEXT4(name, bytes, note) row(&t, bytes, "text4", #name, note);
#define NP_WORDS(name, count, note)                                                                \
	row(&t, sizeof(uint32_t) * (count), #count " words", #name, note);
#define NP_SKIP(bytes, names) row(&t, bytes, "-", "(" names ")", "");
#define NP_END end(&t);
#include "wire/messages.def"
	putchar('\n');
}

/* Print a bound, the largest numbers of a type as powers of two. */
static void
bound(int64_t v)
{
	const char *power = v == INT64_MAX    ? "2^63 - 1"
			    : v == -INT64_MAX ? "-2^63 + 1"
			    : v == INT32_MAX  ? "2^31 - 1"
			    : v == UINT32_MAX ? "2^32 - 1"
					      : NULL;

	if (power != NULL) {
		fputs(power, stdout);
	} else {
		printf("%lld", (long long)v);
	}
}

/* A row of PLAN and the like: a number. */
static void
number(unsigned tag, const char *type, const char *name, int64_t least, int64_t most,
       int64_t absent, const char *note)
{
	printf("| %u | %c%s | ", tag, tolower((unsigned char)type[0]), type + 1);
	bound(least);
	fputs(" to ", stdout);
	bound(most);
	printf(" | %lld | %s%s%s |\n", (long long)absent, name, note[0] != '\0' ? ": " : "", note);
}

/* The same of a text or a list, of at most that many bytes or values. */
static void
several(unsigned tag, const char *type, unsigned most, const char *unit, const char *name,
	const char *note)
{
	printf("| %u | %s | up to %u%s | none | %s: %s |\n", tag, type, most, unit, name, note);
}

/* The tables of PLAN and the like. */
static void
write_plans(void)
{
#define NP_T_MESSAGE(message, code, title)                                                         \
	fputs("\n### " title                                                                       \
	      "\n\n| tag | type | values | absent | field |\n|---:|---|---|---|---|\n",            \
	      stdout);
#define NP_T_NUMBER(type, message, tag, name, least, most, absent, note)                           \
	number(tag, #type, #name, least, most, absent, note);
#define NP_T_U64(message, tag, name, note)                                                         \
	printf("| %u | u64 | any | 0 | %s: %s |\n", tag, #name, note);
#define NP_T_TEXT(message, tag, name, room, note)                                                  \
	several(tag, "text", (room)-1, " bytes", #name, note);
#define NP_T_BYTES(message, tag, name, room, note) several(tag, "bytes", room, "", #name, note);
#define NP_T_LIST(message, tag, name, room, note)                                                  \
	several(tag, "list of u32", room, "", #name, note);
#include "wire/plan.def"
	putchar('\n');
}

/* What the schema says about each kind of field, and whether every document has it. */
#define SIGNED "{\"type\": \"integer\", \"minimum\": 0}", false
#define COUNT "{\"type\": \"integer\", \"minimum\": 0}", true
#define CHOICE "{\"type\": \"integer\", \"minimum\": 1}", false
#define PORT CHOICE
#define TEXT "{\"type\": \"string\"}", false
#define FLAG "{\"type\": \"boolean\"}", true

struct field {
	const char *name, *type; /* NULL: the document doesn't have it */
	bool is_required;
};

/* An object of the JSON schema with these fields. */
static void
write_fields(const struct field *fields, size_t count)
{
	const char *comma = "";

	fputs("   \"type\": \"object\",\n   \"required\": [", stdout);
	for (size_t i = 0; i < count; i++) {
		if (fields[i].name != NULL && fields[i].is_required) {
			printf("%s\n    \"%s\"", comma, fields[i].name);
			comma = ",";
		}
	}
	fputs("\n   ],\n   \"properties\": {", stdout);
	comma = "";
	for (size_t i = 0; i < count; i++) {
		if (fields[i].name != NULL) {
			printf("%s\n    \"%s\": %s", comma, fields[i].name, fields[i].type);
			comma = ",";
		}
	}
	fputs("\n   }\n  },\n", stdout);
}

/* `kind` (COUNT ...) is two initialisers: the type, and whether the field is always there. */
static void
write_end_fields(void)
{
	static const struct field fields[] = {
#define NP_E_NUMBER(type, group, member, json, kind, ...) { json, kind },
#define NP_E_TEXT(group, member, json, ...) { json, TEXT },
#define NP_E_PATH(group, member, json, ...) { json, TEXT },
#define NP_E_FLAG(bit, group, member, json, ...) { json, FLAG },
#include "wire/plan.def"
	};

	write_fields(fields, sizeof(fields) / sizeof(fields[0]));
}

static void
write_plan_fields(void)
{
	static const struct field fields[] = {
#define NP_P_NUMBER(type, member, json, kind, ...) { json, kind },
#define NP_P_FLAG(bit, member, json, ...) { json, FLAG },
#define NP_H_NUMBER(type, member, json, kind, ...) { json, kind },
#define NP_H_FLAG(member, json, ...) { json, FLAG },
#include "wire/plan.def"
	};

	write_fields(fields, sizeof(fields) / sizeof(fields[0]));
}

static void
write_flags(void)
{
	fputs("| bit of flags | meaning |\n|---|---|\n", stdout);
#define NP_T_FLAG(value, note) printf("| 0x%x | %s |\n", value, note);
#include "wire/plan.def"
}

/* The places by name: the lines before and after, and what writes the lines between. */
static const struct {
	const char *name, *begin, *end;
	void (*write)(void);
} places[] = {
	{ "messages", "<!-- messages.def: begin -->\n", "<!-- messages.def: end -->\n",
	  write_tables },
	{ "plan", "<!-- plan.def: begin -->\n", "<!-- plan.def: end -->\n", write_plans },
	{ "flags", "<!-- flags of plan.def: begin -->\n", "<!-- flags of plan.def: end -->\n",
	  write_flags },
	{ "plan-fields", "  \"asked_of_plan\": {\n", "  \"asked_fields\": {\n", write_plan_fields },
	{ "end-fields", "  \"asked_fields\": {\n", "  \"asked_of_end\": {\n", write_end_fields },
};
enum { PLACES = sizeof(places) / sizeof(places[0]) };

int
main(int argc, char **argv)
{
	size_t place = PLACES; /* where the line is; PLACES: in none of them */
	int found = 1;         /* index of the argument that names the place expected next */
	char line[4096];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (place < PLACES && strcmp(line, places[place].end) == 0) {
			place = PLACES;
		}
		if (place < PLACES) {
			continue;
		}
		fputs(line, stdout);
		for (place = 0; place < PLACES && strcmp(line, places[place].begin) != 0;) {
			place++;
		}
		if (place < PLACES) {
			places[place].write();
			found += found < argc && strcmp(argv[found], places[place].name) == 0;
		}
	}
	if (found < argc || place < PLACES) {
		fprintf(stderr, "mkdoc: no %s of the place for %s\n",
			place < PLACES ? "end" : "begin",
			place < PLACES ? places[place].name : argv[found]);
		return 1;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
