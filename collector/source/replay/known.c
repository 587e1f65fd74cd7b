#include "known.h"

#include "interner.h"
#include "names.h"
#include "payload.h"
#include "room.h"

#include <stdlib.h>
#include <string.h>

struct process {
    int64_t process_id; /* number in the new trace; 0: none yet */
    bool ended;
};

struct segment {
    struct ct_account account;
    struct ct_caller nobody; /* caller for notes that precede any thread */
    struct process *process;
    struct ct_process_facts facts;
    char *text[3]; /* copies of the texts in `facts` */
};

struct thread {
    struct ct_caller caller; /* must be first */
    struct row *row;
};

/* A thread of a process. A hook's segment and its companion's segment have the same threads. */
struct row {
    const struct thread *first; /* creates the row in the new trace */
};

struct function {
    struct ct_callee callee; /* holds the function's number for all processes */
    char *text[3];
};

struct callee {
    struct ct_callee callee;
    const struct function *function;
};

/* ---- tables ---- */

static void *find(const struct ct_known_table *table, const void *key)
{
    const int64_t number = ct_intern_find(&table->numbers, key);
    return number > 0 && (size_t)number <= table->count ? table->entry[number - 1] : NULL;
}

/* Finds or adds an entry. Returns the entry, zeroed if it is new, or NULL if out of memory. */
static void *add(struct ct_known_table *table, const void *key, size_t bytes)
{
    void *entry = find(table, key);
    if (entry)
        return entry;
    if (!ct_make_room(&table->entry, table->count, &table->room, sizeof(*table->entry)))
        return NULL;
    bool is_new;
    entry = calloc(1, bytes);
    if (!entry || ct_intern_get(&table->numbers, key, &is_new) != (int64_t)table->count + 1) {
        free(entry);
        return NULL;
    }
    table->entry[table->count++] = entry;
    return entry;
}

static void finish(struct ct_known_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->entry[i]);
    free(table->entry);
    ct_intern_finish(&table->numbers);
}

void ct_known_init(struct ct_known *known)
{
    *known = (struct ct_known){ 0 };
    ct_intern_init(&known->processes.numbers, sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&known->segments.numbers, sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&known->functions.numbers, sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&known->threads.numbers, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&known->rows.numbers, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&known->callees.numbers, 2 * sizeof(int64_t), SIZE_MAX, 1);
}

static void free_texts(char *text[3])
{
    for (int i = 0; i < 3; i++)
        free(text[i]);
}

void ct_known_finish(struct ct_known *known)
{
    for (size_t i = 0; i < known->segments.count; i++) {
        struct segment *segment = known->segments.entry[i];
        ct_account_finish(&segment->account);
        free_texts(segment->text);
    }
    for (size_t i = 0; i < known->functions.count; i++)
        free_texts(((struct function *)known->functions.entry[i])->text);
    for (size_t i = 0; i < known->threads.count; i++)
        ct_caller_rest(known->threads.entry[i]);
    finish(&known->processes);
    finish(&known->segments);
    finish(&known->functions);
    finish(&known->threads);
    finish(&known->rows);
    finish(&known->callees);
}

/* ---- learning ---- */

/* Copies the strings in a form that the database accepts. Returns false if out of memory. */
static bool copy_texts(char *to[3], const struct ct_dump_view *view)
{
    for (int i = 0; i < 3; i++) {
        const size_t bytes = strlen(view->text[i]);
        free(to[i]);
        if (!(to[i] = malloc(bytes + 1)))
            return false;
        ct_text_clean(to[i], view->text[i], bytes);
    }
    return true;
}

static bool are_at_most(uint64_t most, size_t count, const uint64_t *value)
{
    for (size_t i = 0; i < count; i++) {
        if (value[i] > most)
            return false;
    }
    return true;
}
#define AT_MOST(most, ...)                                                                                   \
    are_at_most(most, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t),                          \
                (const uint64_t[]){ __VA_ARGS__ })

static bool learn_process(struct ct_known *known, const struct ct_dump_view *view)
{
    const struct ct_dump_process *body = &view->body->process;
    const struct ct_process_numbers *is = &body->is;
    struct segment *segment = add(&known->segments, &body->segment_id, sizeof(*segment));
    struct process *process = add(&known->processes, &body->process_id, sizeof(*process));
    if (!segment || !process || !copy_texts(segment->text, view) ||
        !AT_MOST(CT_DUMP_MOMENT_MAX, is->start_ticks, is->exec_ns, is->started_ns, is->absent_ns) ||
        is->changed_ns > (int64_t)CT_DUMP_MOMENT_MAX || is->changed_ns < -(int64_t)CT_DUMP_MOMENT_MAX)
        return false;
    segment->nobody.account = &segment->account;
    segment->process = process;
    segment->facts = (struct ct_process_facts){ *is, segment->text[0], segment->text[1], segment->text[2] };
    return true;
}

static bool learn_function(struct ct_known *known, const struct ct_dump_view *view)
{
    const int64_t function_id = view->body->function.function_id;
    struct function *function = add(&known->functions, &function_id, sizeof(*function));
    return function && copy_texts(function->text, view);
}

static int64_t find_thread(const struct ct_caller *caller)
{
    return ((const struct thread *)caller)->row->first->caller.thread_id;
}

static bool learn_thread(struct ct_known *known, const struct ct_dump_thread *body)
{
    struct segment *segment = find(&known->segments, &body->segment_id);
    if (!segment || body->thread_id == 0 || body->tid > UINT32_MAX)
        return false;
    const int64_t key[] = { (int64_t)(intptr_t)segment->process, body->thread_id };
    struct row *row = add(&known->rows, key, sizeof(*row));
    struct thread *thread =
        row ? add(&known->threads, (const int64_t[]){ body->segment_id, body->thread_id }, sizeof(*thread))
            : NULL;
    if (!thread)
        return false;
    if (!row->first)
        row->first = thread;
    thread->row = row;
    thread->caller.account = &segment->account;
    thread->caller.find_thread = row->first == thread ? NULL : find_thread;
    return true;
}

static bool learn_callee(struct ct_known *known, int64_t segment_id, int64_t function_id)
{
    const int64_t key[] = { segment_id, function_id };
    const struct function *function = find(&known->functions, &function_id);
    struct callee *callee = function ? add(&known->callees, key, sizeof(*callee)) : NULL;
    if (callee)
        callee->function = function;
    return callee != NULL;
}

static bool is_end(const char *state)
{
    return strcmp(state, "exited") == 0 || strcmp(state, "killed") == 0 || strcmp(state, "detached") == 0 ||
           strcmp(state, CT_STATE_LEFT) == 0;
}

/* Returns whether all strings can be stored in the database and all known values are in range. Such facts
 * belong to no process of the recording. */
static bool is_plain_fact(const struct ct_dump_view *view, size_t text_bytes)
{
    int64_t value[sizeof(union ct_dump_body) / sizeof(int64_t)];
    const size_t values = ct_dump_shapes[view->type].body_bytes / sizeof(value[0]);
    for (uint8_t i = 0; i < ct_dump_shapes[view->type].texts; i++) {
        char clean[256];
        const size_t bytes = strlen(view->text[i]);
        if (bytes >= text_bytes)
            return false;
        ct_text_clean(clean, view->text[i], bytes);
        if (strcmp(clean, view->text[i]) != 0)
            return false;
    }
    memcpy(value, view->body, values * sizeof(value[0]));
    for (size_t i = 0; i < values; i++) {
        if (value[i] != CT_GPU_UNKNOWN && (value[i] < 0 || value[i] > CT_GPU_VALUE_MAX))
            return false;
    }
    return view->type == CT_DUMP_GPU || value[0] != CT_GPU_UNKNOWN; /* a sample has a time */
}

static bool learn_call(struct ct_known *known, const struct ct_dump_view *view)
{
    const struct ct_dump_call *body = &view->body->call;
    const bool is_call = view->type == CT_DUMP_CALL;
    if (body->kind >= CT_KIND_COUNT || body->kind == CT_KIND_PAD || body->kind == CT_KIND_THREAD ||
        (ct_kind_is_call(body->kind) != 0) != is_call || body->depth > CT_SPAN_DEPTH_MAX ||
        body->end_ns > CT_DUMP_MOMENT_MAX || !ct_known_thread(known, body->segment_id, body->thread_id) ||
        view->tail_bytes > (body->kind == CT_KIND_STRING ? CT_DUMP_STRING_MAX : CT_PAYLOAD_MAX))
        return false;
    struct ct_gpu_work work;
    if (body->kind == CT_KIND_GPU_WORK && !ct_gpu_work_read(view->tail, view->tail_bytes, &work))
        return false;
    return !is_call || (body->thread_id != 0 && learn_callee(known, body->segment_id, body->function_id));
}

bool ct_known_learn(struct ct_known *known, const struct ct_dump_view *view)
{
    const struct ct_lane_facts *lane = &view->body->lane;
    const struct ct_loss_facts *loss = &view->body->loss;
    const struct ct_unsent_facts *unsent = &view->body->unsent;
    const struct ct_open_facts *open = &view->body->open;
    switch (view->type) {
    case CT_DUMP_PROCESS:
        return learn_process(known, view);
    case CT_DUMP_FUNCTION:
        return learn_function(known, view);
    case CT_DUMP_THREAD:
        return learn_thread(known, &view->body->thread);
    case CT_DUMP_NOTE:
    case CT_DUMP_CALL:
        return learn_call(known, view);
    case CT_DUMP_LANE:
        return ct_known_thread(known, lane->segment_id, lane->thread_id) && lane->lane <= UINT32_MAX &&
               lane->position <= CT_DUMP_MOMENT_MAX;
    case CT_DUMP_LOSS:
        return find(&known->segments, &loss->segment_id) && loss->cause < CT_LOSS_COUNT &&
               loss->calls <= CT_UNSENT_CALLS_MAX &&
               AT_MOST(CT_DUMP_MOMENT_MAX, loss->first_ns, loss->last_ns);
    case CT_DUMP_UNSENT:
        return find(&known->segments, &unsent->segment_id) && unsent->entry <= UINT32_MAX &&
               AT_MOST(CT_UNSENT_CALLS_MAX, unsent->lost, unsent->skipped) &&
               AT_MOST(CT_UNSENT_SUM_MAX, unsent->lost_ns, unsent->lost_bytes, unsent->skipped_ns,
                       unsent->skipped_bytes) &&
               learn_callee(known, unsent->segment_id, unsent->function_id);
    case CT_DUMP_NOTHING_OPEN:
        return find(&known->segments, &open->segment_id) != NULL;
    case CT_DUMP_GPU_RECORDING:
        return find(&known->segments, &view->body->recording.segment_id) &&
               strlen(view->text[0]) < CT_GPU_TEXT_BYTES;
    case CT_DUMP_OPEN:
        return open->thread_id != 0 && open->depth < 256 && open->start_ns <= CT_DUMP_MOMENT_MAX &&
               ct_known_thread(known, open->segment_id, open->thread_id) &&
               learn_callee(known, open->segment_id, open->function_id);
    case CT_DUMP_END:
        return view->body->end.ended_ns <= CT_DUMP_MOMENT_MAX && is_end(view->text[0]);
    case CT_DUMP_GPU:
    case CT_DUMP_GPU_SAMPLE:
    case CT_DUMP_GPU_PROCESS:
        return is_plain_fact(view, CT_GPU_TEXT_BYTES);
    case CT_DUMP_UNRECORDED:
        return is_plain_fact(view, 256);
    default:
        return true;
    }
}

struct ct_caller *ct_known_thread(const struct ct_known *known, int64_t segment_id, int64_t thread_id)
{
    struct segment *segment = thread_id == 0 ? find(&known->segments, &segment_id) : NULL;
    if (thread_id == 0)
        return segment ? &segment->nobody : NULL;
    return find(&known->threads, (const int64_t[]){ segment_id, thread_id });
}

/* Copies the function's current ID, which may have changed. */
static struct ct_callee *number(struct callee *callee)
{
    callee->callee.function_id = callee->function->callee.function_id;
    callee->callee.is_driver = callee->function->callee.is_driver;
    return &callee->callee;
}

struct ct_callee *ct_known_callee(const struct ct_known *known, int64_t segment_id, int64_t function_id)
{
    struct callee *callee = find(&known->callees, (const int64_t[]){ segment_id, function_id });
    return callee ? number(callee) : NULL;
}

/* ---- passing to the ledger ---- */

static int tell_process(struct ct_ledger *ledger, struct segment *segment)
{
    if (ct_ledger_register(ledger, &segment->account, &segment->facts) != 0)
        return -1;
    segment->process->process_id = segment->account.process_id;
    return 0;
}

static void tell_function(struct ct_ledger *ledger, struct function *function)
{
    const struct ct_function_name name = { function->text[0], function->text[1], function->text[2] };
    ct_ledger_make_function(ledger, &function->callee, &name);
}

int ct_known_tell(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view)
{
    if (view->type == CT_DUMP_PROCESS)
        return tell_process(ledger, find(&known->segments, &view->body->process.segment_id));
    if (view->type == CT_DUMP_FUNCTION)
        tell_function(ledger, find(&known->functions, &view->body->function.function_id));
    return 0;
}

int ct_known_tell_anew(struct ct_known *known, struct ct_ledger *ledger)
{
    for (size_t i = 0; i < known->segments.count; i++) {
        struct segment *segment = known->segments.entry[i];
        ct_account_revert(&segment->account);
        if (segment->account.generation != 0 && !segment->process->ended &&
            tell_process(ledger, segment) != 0)
            return -1;
    }
    for (size_t i = 0; i < known->functions.count; i++)
        tell_function(ledger, known->functions.entry[i]);
    for (size_t i = 0; i < known->callees.count; i++)
        number(known->callees.entry[i]);
    return 0;
}

/* ---- saving ---- */

int ct_known_save(struct ct_known *known, struct ct_ledger *ledger)
{
    for (size_t i = 0; i < known->threads.count; i++)
        ct_ledger_sum_up(ledger, known->threads.entry[i]);
    for (size_t i = 0; i < known->segments.count; i++) {
        if (ct_ledger_save_sums(ledger, &((struct segment *)known->segments.entry[i])->account) != 0)
            return -1;
    }
    return 0;
}

static int save_end(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view)
{
    const struct ct_end_facts *body = &view->body->end;
    struct process *process = find(&known->processes, &body->process_id);
    if (!process || process->process_id == 0)
        return 0; /* unknown to this recording */
    process->ended = strcmp(view->text[0], CT_STATE_LEFT) != 0;
    const struct ct_end_facts end = { process->process_id, body->ended_ns };
    return ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_END, .text = { view->text[0] }, .end = end });
}

/* Saves a fact about a segment. All such facts begin with the segment's ID. */
static int save_of_segment(struct ct_known *known, struct ct_ledger *ledger, struct ct_fact *fact)
{
    const int64_t segment_id = fact->loss.segment_id;
    const struct segment *segment = find(&known->segments, &segment_id);
    fact->loss.segment_id = segment->account.segment_id;
    if (fact->loss.segment_id == 0)
        return 0;
    switch (fact->type) {
    case CT_FACT_LANE:
        fact->caller = ct_known_thread(known, segment_id, fact->lane.thread_id);
        fact->lane.thread_id = fact->caller->thread_id;
        break;
    case CT_FACT_UNSENT:
        fact->unsent.function_id = ct_known_callee(known, segment_id, fact->unsent.function_id)->function_id;
        break;
    case CT_FACT_OPEN:
        fact->caller = ct_known_thread(known, segment_id, fact->open.thread_id);
        fact->open.thread_id = fact->caller->thread_id;
        fact->open.function_id = ct_known_callee(known, segment_id, fact->open.function_id)->function_id;
        break;
    default:
        break;
    }
    return ct_ledger_save(ledger, fact);
}

int ct_known_save_event(struct ct_known *known, struct ct_ledger *ledger, const struct ct_dump_view *view)
{
    if (view->type == CT_DUMP_END)
        return save_end(known, ledger, view);
    if (view->type < CT_DUMP_LANE ||
        (view->type == CT_DUMP_META && strcmp(view->text[0], "realtime_offset_ns") != 0))
        return 0;
    struct ct_fact fact = { (enum ct_fact_type)(view->type - CT_DUMP_LANE) };
    memcpy(fact.text, view->text, sizeof(fact.text));
    memcpy(&fact.lane, view->body, ct_dump_shapes[view->type].body_bytes);
    return view->type >= CT_DUMP_META ? ct_ledger_save(ledger, &fact) : save_of_segment(known, ledger, &fact);
}
