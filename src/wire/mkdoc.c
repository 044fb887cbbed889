/*
 * Writes the tables of messages into doc/protocol.md, from standard input to standard output: what
 * stands between the two marks is replaced by what messages.def says.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/msg.h"

static const char begin_mark[] = "<!-- messages.def: begin -->\n";
static const char end_mark[] = "<!-- messages.def: end -->\n";

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

int
main(void)
{
	bool within = false, replaced = false;
	char line[4096];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		within = within && strcmp(line, end_mark) != 0;
		if (!within) {
			fputs(line, stdout);
		}
		if (strcmp(line, begin_mark) == 0) {
			write_tables();
			within = replaced = true;
		}
	}
	if (!replaced || within) {
		fprintf(stderr, "mkdoc: no place for the messages: %s",
			replaced ? end_mark : begin_mark);
		return 1;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
