/* A build without jansson. */
#include "cli/document.h"

static int
refuse(const char *option, struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "%s: this program was built without libjansson", option);
}

int
np_document_new(const struct np_cli *cli, struct np_document **doc, struct np_err *err)
{
	*doc = NULL;
	return cli->output.json ? refuse("--json", err) : NP_OK;
}

/* There is no document, so these functions do nothing. */
#define NOTHING(name, ...)                                                                         \
	void name(__VA_ARGS__)                                                                     \
	{                                                                                          \
	}
NOTHING(np_document_free, struct np_document *d)
NOTHING(np_document_begin, struct np_document *d, const struct np_cli *cli,
	const struct np_client *c)
NOTHING(np_document_interim, struct np_document *d, const struct np_interim *i)
NOTHING(np_document_iteration, struct np_document *d, const struct np_outcome *out,
	const struct np_record *record, bool whole)
NOTHING(np_document_result, struct np_document *d, const struct np_look *look,
	const struct np_figures *figures)
NOTHING(np_document_curve, struct np_document *d, const struct np_plan *p, const struct np_knee *k)
NOTHING(np_document_beside, struct np_document *d, const struct np_plan *plan,
	const struct np_hist *idle, const struct np_hist *loaded)
NOTHING(np_document_explain, struct np_document *d, const char *text, const struct np_bag *values)

int
np_document_write(struct np_document *d, const struct np_err *failed, const char *partial, int sig,
		  FILE *out, struct np_err *err)
{
	return NP_OK;
}

int
np_document_engines(const struct np_cli *cli, const struct np_engine_lists *lists, FILE *out,
		    struct np_err *err)
{
	return refuse("--json", err);
}
