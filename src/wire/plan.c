#include "wire/plan.h"

#include "wire/ext.h"

/*
 * Each message fits into a frame with all of its fields: as many bytes as this struct has. But no
 * test has all of them: "station" is of frames, "batch" of datagrams, "congestion" of TCP and DCCP,
 * "service" of DCCP, and the two of further addresses are of SCTP, which leaves out least.
 */
enum { NEVER_TOGETHER = 60 };
#define NP_T_MESSAGE(message, code, title)                                                         \
	struct message##_on_wire {                                                                 \
		uint8_t head[NP_TAGGED_AT];
#define NP_T_U32(message, tag, name, ...) uint8_t name[12];
#define NP_T_I32(message, tag, name, ...) uint8_t name[12];
#define NP_T_I64(message, tag, name, ...) uint8_t name[16];
#define NP_T_U64(message, tag, name, ...) uint8_t name[16];
#define NP_T_F64(message, tag, name, ...) uint8_t name[16];
#define NP_T_TEXT(message, tag, name, room, note) uint8_t name[8 + ((room) + 2) / 4 * 4];
#define NP_T_BYTES(message, tag, name, room, note) uint8_t name[8 + ((room) + 3) / 4 * 4];
#define NP_T_LIST(message, tag, name, room, note) uint8_t name[8 + 4 * (room)];
#define NP_T_END(message)                                                                          \
	}                                                                                          \
	;                                                                                          \
	_Static_assert(sizeof(struct message##_on_wire) <= NP_FRAME_SIZE + NEVER_TOGETHER,         \
		       "too many fields");
#include "wire/plan.def"

#define NUMBER(message, tag, kind, name, least, most, absent)                                      \
	{ tag, kind, #name, offsetof(struct np_##message##_message, name), 0, least, most, absent },
#define SEVERAL(message, tag, kind, name, room)                                                    \
	{ tag, kind, #name, offsetof(struct np_##message##_message, name), room, 0, 0, 0 },

#define NP_T_MESSAGE(message, code, title) static const struct np_tag_row message##_rows[] = {
#define NP_T_U32(message, tag, name, least, most, absent, note)                                    \
	NUMBER(message, tag, NP_TAG_U32, name, least, most, absent)
#define NP_T_I32(message, tag, name, least, most, absent, note)                                    \
	NUMBER(message, tag, NP_TAG_I32, name, least, most, absent)
#define NP_T_I64(message, tag, name, least, most, absent, note)                                    \
	NUMBER(message, tag, NP_TAG_I64, name, least, most, absent)
#define NP_T_U64(message, tag, name, note) NUMBER(message, tag, NP_TAG_U64, name, 0, 0, 0)
#define NP_T_F64(message, tag, name, least, most, absent, note)                                    \
	NUMBER(message, tag, NP_TAG_F64, name, least, most, absent)
#define NP_T_TEXT(message, tag, name, room, note) SEVERAL(message, tag, NP_TAG_TEXT, name, room)
#define NP_T_BYTES(message, tag, name, room, note) SEVERAL(message, tag, NP_TAG_BYTES, name, room)
#define NP_T_LIST(message, tag, name, room, note) SEVERAL(message, tag, NP_TAG_LIST, name, room)
#define NP_T_END(message)                                                                          \
	}                                                                                          \
	;
#include "wire/plan.def"

#define TABLE(rows, name, code)                                                                    \
	{                                                                                          \
		name, code, sizeof(struct np_##rows##_message), rows##_rows,                       \
		    sizeof(rows##_rows) / sizeof(rows##_rows[0])                                   \
	}

const struct np_tagged np_tagged_plan = TABLE(plan, "PLAN", NP_PLAN);
const struct np_tagged np_tagged_grant = TABLE(grant, "GRANT", NP_PLAN + 1);
const struct np_tagged np_tagged_result = TABLE(result, "RESULT", NP_PLAN + 2);
const struct np_tagged np_tagged_engines = TABLE(plan, "ENGINES", NP_EXT_ENGINES);
