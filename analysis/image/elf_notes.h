/* elf_notes.h: notes of an ELF file or a core, one after another. Where the lengths do not fit, they end. */
#ifndef TA_ANALYSIS_IMAGE_ELF_NOTES_H
#define TA_ANALYSIS_IMAGE_ELF_NOTES_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ta__elf_note {
    uint32_t type, owner_bytes, value_bytes;
    const uint8_t *owner, *value;
};

/* The note at `*at`, which moves behind it. 1, or 0 when there is none. */
static inline int ta__elf_note_next(const uint8_t *notes, size_t bytes, size_t *at, struct ta__elf_note *note)
{
    Elf64_Nhdr head;
    if (bytes - *at < sizeof head)
        return 0;
    memcpy(&head, notes + *at, sizeof head);
    size_t owner = *at + sizeof head, left = bytes - owner;
    uint64_t owner_bytes = ((uint64_t)head.n_namesz + 3) & ~3ull, value_bytes = ((uint64_t)head.n_descsz + 3) & ~3ull;
    if (owner_bytes > left || value_bytes > left - owner_bytes)
        return 0;
    *note =
        (struct ta__elf_note){head.n_type, head.n_namesz, head.n_descsz, notes + owner, notes + owner + owner_bytes};
    *at = owner + (size_t)(owner_bytes + value_bytes);
    return 1;
}

static inline int ta__elf_note_is_of(const struct ta__elf_note *note, const char *owner, size_t bytes_with_end)
{
    return note->owner_bytes == bytes_with_end && memcmp(note->owner, owner, bytes_with_end) == 0;
}

#endif
