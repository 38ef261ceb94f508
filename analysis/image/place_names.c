/* place_names.c: see place_names.h. */
#include "analysis/image/place_names.h"

#include <elfutils/libdwfl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/arrays.h"

enum { STACK_MOST = 256 << 10, STACKS_MOST = 4096, FRAMES_MOST = 1000 };

/* ---- copies of stacks -------------------------------------------------------------------------------------------- */

static int copy_stack(struct ta__names *names, size_t thread)
{
    const struct ta__target_thread *one = &names->target->threads[thread];
    struct ta__stack_copy *copy = &names->stacks[thread];
    const struct ta__region *region = ta__target_region(names->target, one->sp);
    if (region == NULL || one->register_count == 0)
        return 0;
    uint64_t start = one->sp & ~UINT64_C(7), end = region->end - start < STACK_MOST ? region->end : start + STACK_MOST;
    copy->bytes = ta__new_array((size_t)(end - start), 1);
    if (copy->bytes == NULL)
        return -1;
    if (ta__target_read(names->target, start, copy->bytes, (size_t)(end - start)) != 0)
        return 0;
    copy->start = start;
    copy->end = end;
    return 0;
}

int ta__names_open(struct ta__names *names, struct ta__target *target, int with_stacks)
{
    *names = (struct ta__names){.target = target, .thread_count = target->thread_count};
    names->stacks = ta__new_array(target->thread_count + 1, sizeof *names->stacks);
    names->frames = ta__new_array(target->thread_count + 1, sizeof *names->frames);
    if (names->stacks == NULL || names->frames == NULL)
        return -1;
    for (size_t i = 0; with_stacks && i < target->thread_count && i < STACKS_MOST; i++)
        if (copy_stack(names, i) != 0)
            return -1;
    return 0;
}

void ta__names_close(struct ta__names *names)
{
    for (size_t i = 0; i < names->thread_count; i++) {
        if (names->stacks != NULL)
            free(names->stacks[i].bytes);
        if (names->frames != NULL)
            free(names->frames[i].items);
    }
    free(names->stacks);
    free(names->frames);
    if (names->dwfl != NULL)
        dwfl_end(names->dwfl);
    memset(names, 0, sizeof *names);
}

/* ---- the files --------------------------------------------------------------------------------------------------- */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

static Dwfl *files_of(struct ta__names *names)
{
    const struct ta__target *target = names->target;
    if (names->dwfl != NULL || names->has_failed)
        return names->dwfl;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    names->has_failed = dwfl == NULL;
    if (dwfl == NULL)
        return NULL;
    dwfl_report_begin(dwfl);
    for (size_t i = 0; i < target->object_count; i++) {
        const struct ta__object_file *object = &target->objects[i];
        const char *path = ta__target_string(target, object->path);
        int file = ta__target_open_file(target, path);
        if (file >= 0 && dwfl_report_elf(dwfl, path, path, file, object->bias, true) == NULL)
            close(file);
    }
    dwfl_report_end(dwfl, NULL, NULL);
    return names->dwfl = dwfl;
}

static void put_name(const char *name, uint64_t offset, char *text, size_t room)
{
    char *demangled = name[0] == '_' && name[1] == 'Z' ? cplus_demangle_v3(name, DMGL_PARAMS | DMGL_ANSI) : NULL;
    const char *shown = demangled != NULL ? demangled : name;
    if (offset != 0)
        snprintf(text, room, "%s+%llu", shown, (unsigned long long)offset);
    else
        snprintf(text, room, "%s", shown);
    free(demangled);
}

void ta__name_of_address(struct ta__names *names, uint64_t address, char *text, size_t room)
{
    Dwfl *dwfl = files_of(names);
    Dwfl_Module *module = dwfl != NULL ? dwfl_addrmodule(dwfl, address) : NULL;
    GElf_Off offset = 0;
    GElf_Sym symbol;
    text[0] = '\0';
    const char *name =
        module != NULL ? dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL) : NULL;
    if (name != NULL && *name != '\0' && (symbol.st_size == 0 ? offset < 4096 : offset < symbol.st_size))
        put_name(name, offset, text, room);
}

/* ---- frames: libdwfl unwinds, and asks for memory and registers -------------------------------------------------- */

/* It knows threads by number, from 1 on: ids in a core may be anything. */
static pid_t next_thread(Dwfl *dwfl, void *user, void **place)
{
    struct ta__names *names = user;
    size_t number = *place == NULL ? 0 : (size_t)((struct ta__frames *)*place - names->frames) + 1;
    (void)dwfl;
    if (number >= names->thread_count)
        return 0;
    *place = &names->frames[number];
    return (pid_t)number + 1;
}

static bool get_thread(Dwfl *dwfl, pid_t number, void *user, void **place)
{
    struct ta__names *names = user;
    (void)dwfl;
    if (number < 1 || (size_t)number > names->thread_count)
        return false;
    *place = &names->frames[number - 1];
    return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *user)
{
    const struct ta__names *names = user;
    (void)dwfl;
    for (size_t i = 0; i < names->thread_count; i++) {
        const struct ta__stack_copy *copy = &names->stacks[i];
        if (address >= copy->start && address < copy->end && copy->end - address >= sizeof *word) {
            memcpy(word, copy->bytes + (address - copy->start), sizeof *word);
            return true;
        }
    }
    return false;
}

static bool set_registers(Dwfl_Thread *dwfl_thread, void *place)
{
#if defined(__x86_64__)
    /* By DWARF's numbers: where the kernel's structure has each; 7 is the stack pointer, 16 the next instruction. */
    static const unsigned char order[17] = {10, 12, 11, 5, 13, 14, 4, 0, 9, 8, 7, 6, 3, 2, 1, 0, 0};
    const struct ta__target_thread *thread = ((const struct ta__frames *)place)->thread;
    Dwarf_Word words[17];
    for (size_t i = 0; i < 17; i++)
        words[i] = i == 7 ? thread->sp : i == 16 ? thread->ip : thread->registers[order[i]];
    return thread->register_count != 0 && dwfl_thread_state_registers(dwfl_thread, 0, 17, words);
#else
    (void)dwfl_thread, (void)place;
    return false;
#endif
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_word,
    .set_initial_registers = set_registers,
};

static int add_frame(Dwfl_Frame *state, void *user)
{
    enum { STACK_POINTER = 7 };
    struct ta__frames *frames = user;
    Dwarf_Addr ip;
    Dwarf_Word sp;
    bool is_exact;
    if (frames->count == FRAMES_MOST || !dwfl_frame_pc(state, &ip, &is_exact) ||
        dwfl_frame_reg(state, STACK_POINTER, &sp) != 0 ||
        ta__grow(&frames->items, &frames->capacity, frames->count + 1, sizeof *frames->items) != 0)
        return DWARF_CB_ABORT;
    frames->items[frames->count++] = (struct ta__stack_frame){sp, is_exact ? ip : ip - 1};
    return DWARF_CB_OK;
}

/* A place lies in the frame that began, downwards, last above it: at the stack pointer of the one before. */
void ta__name_of_frame(struct ta__names *names, size_t thread, uint64_t address, char *text, size_t room)
{
    Dwfl *dwfl = files_of(names);
    struct ta__frames *frames = thread < names->thread_count ? &names->frames[thread] : NULL;
    text[0] = '\0';
    if (dwfl == NULL || frames == NULL)
        return;
    if (!frames->is_known) {
        frames->is_known = 1;
        for (size_t i = 0; i < names->thread_count; i++)
            names->frames[i].thread = &names->target->threads[i];
        if (names->is_attached || dwfl_attach_state(dwfl, NULL, 1, &thread_callbacks, names)) {
            names->is_attached = 1;
            dwfl_getthread_frames(dwfl, (pid_t)thread + 1, add_frame, frames);
        }
    }
    for (size_t i = frames->count; i-- > 0;)
        if (frames->items[i].sp <= address) {
            ta__name_of_address(names, frames->items[i].ip, text, room);
            char *plus = strrchr(text, '+');
            if (plus != NULL && plus != text && strspn(plus + 1, "0123456789") == strlen(plus + 1))
                *plus = '\0';
            return;
        }
}

/* ---- classes: a table of virtual functions has the type's description in front of it ------------------------------- */

/* In C++'s common ABI: table[-2] how far the object's beginning is, table[-1] the description; the latter's second word
 * is the mangled name. */
void ta__name_of_class(struct ta__names *names, uint64_t word, char *text, size_t room)
{
    struct ta__target *target = names->target;
    uint64_t top, description, name_address;
    char mangled[200] = "_ZTS";
    text[0] = '\0';
    if (word % 8 != 0 || ta__target_object(target, word) == NULL || ta__target_word(target, word - 16, &top) != 0 ||
        (int64_t)top > 0 || (int64_t)top < -(1 << 20) || ta__target_word(target, word - 8, &description) != 0 ||
        description % 8 != 0 || ta__target_object(target, description) == NULL ||
        ta__target_word(target, description + 8, &name_address) != 0 ||
        ta__target_object(target, name_address) == NULL ||
        ta__target_text(target, name_address, mangled + 4, sizeof mangled - 4) != 0)
        return;
    char *demangled = cplus_demangle_v3(mangled, DMGL_PARAMS | DMGL_ANSI);
    static const char before[] = "typeinfo name for ";
    if (demangled != NULL && strncmp(demangled, before, sizeof before - 1) == 0)
        snprintf(text, room, "%s", demangled + sizeof before - 1);
    free(demangled);
}
