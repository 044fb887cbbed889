/* A build without jansson. */
#include "cli/document.h"
#include "cli/merge.h"
#include "cli/saved.h"

int
np_document_new(const struct np_cli *cli, struct np_document **doc, struct np_err *err)
{
	*doc = NULL;
	if (cli->output.json) {
		return np_fail(err, NP_EUNSUP, 0,
			       "--json: this program was built without libjansson");
	}
	return NP_OK;
}

void
np_document_free(struct np_document *d)
{
}

void
np_document_begin(struct np_document *d, const struct np_cli *cli, const struct np_client *c,
		  const struct np_ends *ends)
{
}

void
np_document_interim(struct np_document *d, const struct np_interim *i)
{
}

void
np_document_iteration(struct np_document *d, const struct np_outcome *out,
		      const struct np_record *record, bool whole)
{
}

void
np_document_result(struct np_document *d, const struct np_look *look,
		   const struct np_figures *figures)
{
}

void
np_document_curve(struct np_document *d, const struct np_plan *p, const struct np_knee *k)
{
}

void
np_document_beside(struct np_document *d, const struct np_plan *plan, const struct np_hist *idle,
		   const struct np_hist *loaded)
{
}

void
np_document_explain(struct np_document *d, const char *text, const struct np_bag *values)
{
}

int
np_document_write(struct np_document *d, const struct np_verdict *v, FILE *out, struct np_err *err)
{
	return NP_OK;
}

int
np_document_engines(const struct np_cli *cli, const struct np_engine_lists *lists, FILE *out,
		    struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "--json: this program was built without libjansson");
}

int
np_saved_show(const struct np_cli *cli, FILE *out, struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "--show: this program was built without libjansson");
}

int
np_merge(const struct np_cli_output *o, FILE *out, struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "--merge: this program was built without libjansson");
}

int
np_saved_read(const char *bytes, size_t size, struct np_saved **s, struct np_err *err)
{
	*s = NULL;
	return np_fail(err, NP_EUNSUP, 0, "this build has no JSON");
}

void
np_saved_free(struct np_saved *s)
{
}

int
np_saved_print(const struct np_saved *s, const struct np_cli_output *o, FILE *out,
	       struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "this build has no JSON");
}

void
np_saved_print_evidence(const struct np_saved *s, const struct np_cli_evidence *wanted, FILE *out)
{
}
