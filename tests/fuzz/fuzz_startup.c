/* fuzz_startup.c: what the library reads before main, as any bytes: the variables TRACEALLOC and TRACEALLOC_OPTIONS, and
 * files of rules. libFuzzer's entry; fuzz_replay.c runs the corpus without libFuzzer.
 *
 * The first byte chooses what the rest is: n a number of frames, o options, anything else rules.
 *
 * The reader of options is taken as it stands in its file: a wrong option ends the process, here it ends the input.
 * Rules are not put in force. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/message.h"
#include "base/rule_text.h"

static jmp_buf refused;

__attribute__((noreturn)) static void end_of_input(int status)
{
    longjmp(refused, status);
}

static void quiet(const char *line);

#define _exit                       end_of_input
#define ta__message_line(line, ...) quiet(line)
#define ta__message_send(message)   quiet((message)->text)
#include "alloc/options.c"
#undef _exit
#undef ta__message_line
#undef ta__message_send

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void quiet(const char *line)
{
    MUST(*line != '\0');
}

/* ---- one input ---- */

/* Every text that is kept is one, and fits. */
static void check_options(void)
{
    const struct ta__options *found = &ta__options;
    MUST(memchr(found->output, '\0', sizeof found->output) != NULL);
    MUST(memchr(found->rules, '\0', sizeof found->rules) != NULL);
    MUST(memchr(found->text, '\0', sizeof found->text) != NULL);
}

static void read_as_options(const char *text, int is_number)
{
    memset(&ta__options, 0, sizeof ta__options);
    if (setjmp(refused) == 0) {
        if (is_number)
            read_frames(text);
        else
            read_options(text);
        MUST(ta__options.nframe >= 0 && ta__options.nframe <= TA_NFRAME_MAX);
        MUST(ta__options.peak_percent >= 0 && ta__options.peak_percent <= 1000);
        MUST(ta__options.process >= 0);
    }
    check_options();
}

static int is_inside(const struct ta__rule_text *rules, const char *word)
{
    return word == NULL || (word >= rules->text && word < rules->text + rules->text_bytes &&
                            memchr(word, '\0', (size_t)(rules->text + rules->text_bytes - word)) != NULL);
}

static void check_patterns(const struct ta__rule_text *rules, const char *const *patterns)
{
    for (int k = 0; k < TA__PATTERNS_MAX && patterns[k] != NULL; k++)
        MUST(is_inside(rules, patterns[k]));
    MUST(patterns[TA__PATTERNS_MAX] == NULL);
}

static void check_rules(const struct ta__rule_text *rules)
{
    MUST(rules->rule_count <= TA__RULES_MAX);
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        const struct ta__rule *rule = &rules->rules[i];
        MUST(rule->name != NULL && is_inside(rules, rule->name));
        MUST(rule->modules[0] != NULL || rule->functions[0] != NULL || rule->files[0] != NULL);
        check_patterns(rules, rule->modules);
        check_patterns(rules, rule->functions);
        check_patterns(rules, rule->files);
    }
    for (uint32_t i = 0; i < rules->object_count; i++)
        MUST(rules->objects[i].first + rules->objects[i].count <= rules->range_count);
    for (uint32_t i = 0; i < rules->range_count; i++)
        MUST(rules->ranges[i].rule < rules->rule_count);
}

static void read_as_rules(const char *text, size_t length)
{
    char path[32];
    struct ta__rule_text rules;
    int fd = memfd_create("rules", 0);
    MUST(fd >= 0 && write(fd, text, length) == (ssize_t)length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ta__rule_text_read(&rules, path))
        check_rules(&rules);
    else
        MUST(rules.error.length > 0 && strncmp(rules.error.text, path, strlen(path)) == 0);
    ta__rule_text_close(&rules);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (*data == 'n' || *data == 'o')
        read_as_options(text, *data == 'n');
    else
        read_as_rules(text, size - 1);
    free(text);
    return 0;
}
