#include "opt/doc.h"

#include <inttypes.h>
#include <string.h>

int
np_doc_print(const struct np_doc *doc, FILE *out)
{
	fprintf(out, "package\t%s\n", doc->package);
	for (size_t i = 0; i < doc->table_count; i++) {
		const struct np_doc_table *t = &doc->tables[i];

		fprintf(out, "table\t%s\n", t->name);
		for (size_t n = 0; t->scopes != NULL && t->scopes[n] != NULL; n++) {
			fprintf(out, "scope\t%s\n", t->scopes[n]);
		}
		for (size_t n = 0; t->groups != NULL && t->groups[n] != NULL; n++) {
			fprintf(out, "group\t%s\n", t->groups[n]);
		}
		for (size_t n = 0; n < t->count; n++) {
			const struct np_option *o = &t->rows[n];
			bool none =
			    o->arg == NULL || o->kind == NP_OPT_FLAG || o->kind == NP_OPT_PLAIN;
			bool may = o->kind == NP_OPT_NEXT || o->kind == NP_OPT_NUMBER;
			const char *argument = none                      ? "none"
					       : may                     ? "may"
					       : o->kind == NP_OPT_MAYBE ? "glued"
									 : "needs";

			fprintf(out, "row\t%.1s\t%s\t%s\t%s\t", &o->letter,
				o->name != NULL ? o->name : "", argument,
				o->arg != NULL ? o->arg : "");
			/* The range of a number, unless the argument's name tells it. */
			if (!np_option_is_number(o) || o->arg == NULL ||
			    strchr(o->arg, '|') != NULL || (o->min == 0 && o->max == 0)) {
				/* any */
			} else if (o->max >= INT32_MAX) {
				fprintf(out, "at least %" PRId64, o->min);
			} else {
				fprintf(out, "%" PRId64 " to %" PRId64, o->min, o->max);
			}
			fprintf(out, "\t%u\t%s\n",
				t->scopes != NULL ? o->scope : (unsigned)o->group, o->help);
		}
	}
	for (size_t i = 0; i < doc->list_count; i++) {
		fprintf(out, "list\t%s\n", doc->lists[i].name);
		for (size_t n = 0; doc->lists[i].at(n) != NULL; n++) {
			fprintf(out, "item\t%s\n", doc->lists[i].at(n));
		}
	}
	return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
