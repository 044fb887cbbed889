#include "wire/plan.h"

#define NUMBER(message, tag, kind, name, least, most, absent)                                      \
	{ tag, kind, #name, offsetof(struct np_##message##_message, name), 0, least, most, absent },
#define SEVERAL(message, tag, kind, name, room)                                                    \
	{ tag, kind, #name, offsetof(struct np_##message##_message, name), room, 0, 0, 0 },

#define NP_T_MESSAGE(message, code, title) static const struct np_tag_row message##_rows[] = {
#define NP_T_NUMBER(type, message, tag, name, least, most, absent, note)                           \
	NUMBER(message, tag, NP_TAG_##type, name, least, most, absent)
#define NP_T_TEXT(message, tag, name, room, note) SEVERAL(message, tag, NP_TAG_TEXT, name, room)
#define NP_T_BYTES(message, tag, name, room, note) SEVERAL(message, tag, NP_TAG_BYTES, name, room)
#define NP_T_LIST(message, tag, name, room, note) SEVERAL(message, tag, NP_TAG_LIST, name, room)
#define NP_T_END(message)                                                                          \
	}                                                                                          \
	;
#include "wire/plan.def"

#define TABLE(rows, name, type)                                                                    \
	{                                                                                          \
		name, type, sizeof(struct np_##rows##_message),                                    \
		    sizeof(struct np_##rows##_whole) - NP_TAGGED_AT, rows##_rows,                  \
		    sizeof(rows##_rows) / sizeof(rows##_rows[0])                                   \
	}

const struct np_tagged np_tagged_hello = TABLE(hello, "greeting", NP_EXT_HELLO);
const struct np_tagged np_tagged_plan = TABLE(plan, "PLAN", NP_PLAN);
const struct np_tagged np_tagged_grant = TABLE(grant, "GRANT", NP_PLAN + 1);
const struct np_tagged np_tagged_result = TABLE(result, "RESULT", NP_PLAN + 2);
const struct np_tagged np_tagged_engines = TABLE(plan, "ENGINES", NP_EXT_ENGINES);
const struct np_tagged np_tagged_evidence = TABLE(evidence, "EVIDENCE", NP_EXT_EVIDENCE);
const struct np_tagged np_tagged_error = TABLE(error, "ERROR", NP_EXT_ERROR);

/* Most bytes of fields in the message of that type; 0: it is not in the list. */
static size_t
most_of(const struct np_tagged *const *list, size_t count, uint32_t type)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i]->type == type) {
			return list[i]->most;
		}
	}
	return 0;
}

size_t
np_request_most(uint32_t type)
{
	static const struct np_tagged *const list[] = { &np_tagged_plan, &np_tagged_engines,
							&np_tagged_evidence };

	return most_of(list, sizeof(list) / sizeof(list[0]), type);
}

size_t
np_answer_most(uint32_t type)
{
	static const struct np_tagged *const list[] = { &np_tagged_grant, &np_tagged_result,
							&np_tagged_error };

	return type == NP_EXT_BAG ? NP_EXT_BYTES
				  : most_of(list, sizeof(list) / sizeof(list[0]), type);
}
