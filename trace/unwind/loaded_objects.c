/* loaded_objects.c: see loaded_objects.h. */
#include "trace/unwind/loaded_objects.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/atomics.h"
#include "base/memory.h"

enum { LIST_CAPACITY = 4096 };

/* The list for old libraries: rewritten in place by one writer at a time; readers retry when `version` was odd or
 * moved while they read. */
static struct {
    struct ta__object *objects;
    uint32_t count;
    uint32_t version;
    uint32_t being_written;
    int forced;
} list;

void ta__objects_use_list(int on)
{
    list.forced = on;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static int has_started;

__attribute__((constructor(101))) static void note_start(void)
{
    has_started = 1;
}

/* In a static program libc itself sets up the tables of _dl_find_object, in two steps, and allocates between them.
 * Until the second is done the function must not be called, and the few stacks of that time end early. */
static int has_find_object(void)
{
    return _dl_find_object != NULL && !list.forced && (has_started || getauxval(AT_BASE) != 0);
}

/* Of the program libc may tell the text alone: where it has no loader, and where the kernel has mapped its segments apart,
 * pages of 2 MiB in mind, or one page as lld does at times. The rest is in the headers that the kernel tells. */
static void widen(struct ta__object *object)
{
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    unsigned long count = segments != NULL ? getauxval(AT_PHNUM) : 0;
    for (unsigned long i = 0; i < count; i++) {
        uintptr_t low = object->bias + segments[i].p_vaddr, high = low + segments[i].p_memsz;
        if (segments[i].p_type != PT_LOAD)
            continue;
        object->start = (low & ~(uintptr_t)4095) < object->start ? low & ~(uintptr_t)4095 : object->start;
        object->end = high > object->end ? high : object->end;
    }
}

static int find_in_loader(uintptr_t address, struct ta__object *object)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) != 0)
        return 0;
    object->start = (uintptr_t)found.dlfo_map_start;
    object->end = (uintptr_t)found.dlfo_map_end;
    object->bias = found.dlfo_link_map->l_addr;
    object->eh_frame_hdr = found.dlfo_eh_frame;
    object->link_map = found.dlfo_link_map;
    object->name = found.dlfo_link_map->l_name != NULL ? found.dlfo_link_map->l_name : "";
    if (object->name[0] == '\0')
        widen(object);
    return 1;
}
#else
static int has_find_object(void)
{
    return 0;
}

static int find_in_loader(uintptr_t address, struct ta__object *object)
{
    (void)address;
    (void)object;
    return 0;
}
#endif

typedef uintptr_t __attribute__((may_alias)) any_word;

/* Copies word by word, because another thread may write or read them at the same time; `version` tells afterwards. */
static void copy_words(struct ta__object *to, const struct ta__object *from)
{
    _Static_assert(sizeof *to % sizeof(uintptr_t) == 0, "an object is made of words");
    for (size_t i = 0; i < sizeof *to / sizeof(uintptr_t); i++)
        ta__store_relaxed((any_word *)to + i, ta__load_relaxed((const any_word *)from + i));
}

static int find_in_list(uintptr_t address, struct ta__object *object)
{
    enum { ATTEMPTS = 1000 };
    if (ta__load_acquire(&list.objects) == NULL)
        return 0;
    for (int i = 0; i < ATTEMPTS; i++) {
        uint32_t version = ta__load_acquire(&list.version);
        if ((version & 1) == 0) {
            int found = 0;
            uint32_t count = ta__load_relaxed(&list.count);
            for (uint32_t at = 0; at < count && !found; at++) {
                copy_words(object, &list.objects[at]);
                found = address >= object->start && address < object->end;
            }
            /* adds nothing: its release half keeps the reads above from moving behind it */
            if (ta__add_acq_rel(&list.version, 0) == version)
                return found;
        }
        ta__cpu_pause();
    }
    return 0;
}

int ta__object_find(uintptr_t address, struct ta__object *object)
{
    return has_find_object() ? find_in_loader(address, object) : find_in_list(address, object);
}

static int add_to_list(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    uint32_t *count = context;
    if (*count == LIST_CAPACITY)
        return 1;
    struct ta__object object = {.bias = info->dlpi_addr, .link_map = info->dlpi_name, .name = info->dlpi_name};
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD) {
            if (segment->p_vaddr < low)
                low = segment->p_vaddr;
            if (segment->p_vaddr + segment->p_memsz > high)
                high = segment->p_vaddr + segment->p_memsz;
        } else if (segment->p_type == PT_GNU_EH_FRAME) {
            object.eh_frame_hdr = (const void *)(info->dlpi_addr + segment->p_vaddr);
        }
    }
    if (low >= high)
        return 0;
    object.start = info->dlpi_addr + (low & ~(uintptr_t)4095);
    object.end = info->dlpi_addr + high;
    copy_words(&list.objects[(*count)++], &object);
    return 0;
}

void ta__objects_refresh(void)
{
    if (has_find_object() || ta__exchange_acq_rel(&list.being_written, 1) != 0)
        return;
    if (list.objects == NULL)
        ta__store_release(&list.objects, (struct ta__object *)ta__memory_map(LIST_CAPACITY * sizeof *list.objects));
    if (list.objects != NULL) {
        ta__add_acq_rel(&list.version, 1); /* acquire half: the writes below stay behind it */
        uint32_t count = 0;
        dl_iterate_phdr(add_to_list, &count);
        ta__store_relaxed(&list.count, count);
        ta__add_acq_rel(&list.version, 1);
    }
    ta__store_release(&list.being_written, 0);
}

void ta__objects_after_fork(void)
{
    if (list.version % 2 != 0) {
        list.count = 0; /* half written: empty until it is made anew */
        list.version++;
    }
    ta__store_release(&list.being_written, 0);
}
