/* report_facts.c: what a report says about a recording beside its traces, as JSON. See report.h. */
#include "analysis/report/report.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/exchange/json.h"
#include "analysis/failure.h"

static void add_name(struct ta__text *json, const char *name)
{
    ta__text_add_format(json, "%s\"%s\":", json->bytes[json->length - 1] == '{' ? "" : ",", name);
}

static void add_string(struct ta__text *json, const char *name, const char *value)
{
    add_name(json, name);
    ta__json_add_string(json, value, strlen(value));
}

static void add_number(struct ta__text *json, const char *name, uint64_t value)
{
    add_name(json, name);
    ta__text_add_format(json, "%" PRIu64, value);
}

static void add_info(struct ta__text *json, struct ta_snapshot *snapshot, const struct ta_snapshot_info *info)
{
    add_string(json, "program", info->program);
    add_string(json, "host", info->host);
    add_string(json, "reason", info->reason);
    add_string(json, "warning", ta_snapshot_warning(snapshot));
    add_number(json, "pid", info->pid);
    add_number(json, "start", info->start_time_ns / 1000000);
    add_number(json, "time", info->time_ns / 1000000);
    add_number(json, "current", info->current_bytes);
    add_number(json, "peak", info->peak_bytes);
    add_number(json, "sampled", info->sample_bytes);
    add_number(json, "lost", info->lost);
    add_number(json, "overflowed", info->overflowed);
    add_number(json, "cutShort", info->cut_short);
    add_number(json, "frames", (uint64_t)ta_snapshot_traceback_limit(snapshot));
}

/* Of users, and of the writer: docs/format.md. */
static void add_metadata(struct ta__text *json, struct ta_snapshot *snapshot)
{
    const char *key, *value;
    size_t key_length, value_length;
    add_name(json, "facts");
    ta__text_add(json, "{", 1);
    for (size_t i = 0;
         ta_snapshot_metadata_at(snapshot, i, &key, &key_length, &value, &value_length) == 0 && !json->failed; i++) {
        if (i > 0)
            ta__text_add(json, ",", 1);
        ta__json_add_string(json, key, key_length);
        ta__text_add(json, ":", 1);
        ta__json_add_string(json, value, value_length);
    }
    ta__text_add(json, "}", 1);
}

static void add_domains(struct ta__text *json, struct ta_snapshot *snapshot)
{
    struct ta_domain_info domain;
    add_name(json, "domains");
    ta__text_add(json, "[", 1);
    for (size_t i = 0; ta_snapshot_domain(snapshot, i, &domain, sizeof domain) == 0 && !json->failed; i++) {
        ta__text_add_string(json, i > 0 ? ",{" : "{");
        add_number(json, "number", domain.number);
        add_string(json, "name", domain.name);
        add_number(json, "peak", domain.peak_bytes);
        add_number(json, "limit", domain.limit_bytes);
        ta__text_add(json, "}", 1);
    }
    ta__text_add(json, "]", 1);
}

/* Modules whose frames have no lines, and why: it is the first thing to know about a report full of bare names. */
static void add_modules(struct ta__text *json, struct ta_snapshot *snapshot)
{
    struct ta_module_symbols module;
    int is_first = 1;
    add_name(json, "unsymbolized");
    ta__text_add(json, "[", 1);
    for (size_t i = 0; ta_snapshot_module_symbols(snapshot, i, &module) == 0 && !json->failed; i++) {
        if (module.state == TA_MODULE_UNUSED || module.state == TA_MODULE_LINES || module.state == TA_MODULE_STORED)
            continue;
        ta__text_add_string(json, is_first ? "{" : ",{");
        add_string(json, "path", module.path);
        add_string(json, "reason", module.reason);
        ta__text_add(json, "}", 1);
        is_first = 0;
    }
    ta__text_add(json, "]", 1);
}

int ta__report_facts(struct ta__text *json, struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0)
        return -1;
    ta__text_add(json, "{", 1);
    if (json->failed)
        return ta__fail_memory();
    add_info(json, snapshot, &info);
    add_metadata(json, snapshot);
    add_domains(json, snapshot);
    add_modules(json, snapshot);
    ta__text_add(json, "}", 1);
    return json->failed ? ta__fail_memory() : 0;
}
