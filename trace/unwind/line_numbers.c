/* line_numbers.c: see line_numbers.h. A unit of .debug_line is a header with tables of folders and files, and a program
 * that makes rows (address, file, line), ascending within a sequence: an address belongs to the row before the first that
 * is greater. All programs are run once for all addresses; tables are read only of units where one was met. */
#include "trace/unwind/line_numbers.h"

#include <errno.h>
#include <string.h>

#include "trace/unwind/debug_section.h"
#include "trace/unwind/leb128.h"

/* Names of the standard that elf.h has not. */
enum {
    COPY = 1,
    ADVANCE_PC,
    ADVANCE_LINE,
    SET_FILE,
    SET_COLUMN,
    NEGATE_STMT,
    SET_BASIC_BLOCK,
    CONST_ADD_PC,
    FIXED_ADVANCE_PC,
    END_SEQUENCE = 1,
    SET_ADDRESS,
    CONTENT_PATH = 1,
    CONTENT_FOLDER,
    FORM_BLOCK = 0x09,
    FORM_DATA1 = 0x0b,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_DATA16 = 0x1e,
    FORM_STRING = 0x08,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_LINE_STRP = 0x1f,
};

/* Sections, each opened when something is first wanted of it. */
enum { PROGRAMS, LINE_TEXTS, TEXTS, SECTIONS };

struct search {
    const struct ta__elf_file *file;
    struct ta__debug_section sections[SECTIONS];
    int is_open[SECTIONS];
    struct ta__line_number **lines;
    size_t count, missing;
};

struct unit {
    struct ta__cursor tables, program;
    const uint8_t *lengths; /* of the operands of standard opcodes, 1 … opcode_base - 1 */
    uint16_t version;
    uint8_t offset_bytes, instruction_bytes, line_range, opcode_base;
    int8_t line_base;
};

/* ---- tables: file number → path ---------------------------------------------------------------------------------- */

static const struct ta__debug_section *section_of(struct search *search, int which)
{
    static const char *const names[SECTIONS] = {".debug_line", ".debug_line_str", ".debug_str"};
    if (!search->is_open[which])
        ta__debug_section_open(search->file, names[which], &search->sections[which]);
    search->is_open[which] = 1;
    return &search->sections[which];
}

static const char *text_at(struct search *search, int which, uint64_t offset)
{
    const struct ta__debug_section *section = section_of(search, which);
    if (offset >= section->size)
        return "";
    const char *text = (const char *)section->bytes + offset;
    return memchr(text, '\0', section->size - offset) != NULL ? text : "";
}

static const char *get_text(struct ta__cursor *cursor)
{
    size_t room = (size_t)(cursor->end - cursor->at);
    const uint8_t *end = cursor->failed ? NULL : memchr(cursor->at, '\0', room);
    if (end == NULL) {
        cursor->failed = 1;
        return "";
    }
    const char *text = (const char *)cursor->at;
    cursor->at = end + 1;
    return text;
}

/* One field of an entry of version 5: its number, or its text. */
static uint64_t get_form(struct search *search, const struct unit *unit, struct ta__cursor *cursor, uint64_t form,
                         const char **text)
{
    switch (form) {
    case FORM_STRING:
        *text = get_text(cursor);
        return 0;
    case FORM_LINE_STRP:
        *text = text_at(search, LINE_TEXTS, ta__get_fixed(cursor, unit->offset_bytes));
        return 0;
    case FORM_STRP:
        *text = text_at(search, TEXTS, ta__get_fixed(cursor, unit->offset_bytes));
        return 0;
    case FORM_UDATA:
        return ta__get_uleb(cursor);
    case FORM_DATA1:
        return ta__get_fixed(cursor, 1);
    case FORM_DATA2:
        return ta__get_fixed(cursor, 2);
    case FORM_DATA4:
        return ta__get_fixed(cursor, 4);
    case FORM_DATA8:
        return ta__get_fixed(cursor, 8);
    case FORM_DATA16:
        ta__get_bytes(cursor, 16);
        return 0;
    case FORM_BLOCK:
        ta__get_bytes(cursor, ta__get_uleb(cursor));
        return 0;
    default:
        cursor->failed = 1;
        return 0;
    }
}

/* Goes through one table of version 5, and answers the entry `wanted`. */
static const char *get_entry(struct search *search, const struct unit *unit, struct ta__cursor *cursor, uint64_t wanted,
                             uint64_t *folder)
{
    struct ta__cursor formats = *cursor;
    unsigned format_count = (unsigned)ta__get_fixed(&formats, 1);
    struct ta__cursor entries = formats;
    for (unsigned i = 0; i < 2 * format_count; i++)
        ta__get_uleb(&entries);
    uint64_t count = ta__get_uleb(&entries);
    const char *found = "";
    if (format_count == 0 && count > 0) /* entries of no bytes, and there may be 2^64 of them */
        entries.failed = 1;
    for (uint64_t entry = 0; entry < count && !entries.failed; entry++) {
        struct ta__cursor format = formats;
        for (unsigned i = 0; i < format_count; i++) {
            uint64_t content = ta__get_uleb(&format), form = ta__get_uleb(&format);
            const char *text = "";
            uint64_t number = get_form(search, unit, &entries, form, &text);
            if (entry == wanted && content == CONTENT_PATH)
                found = text;
            else if (entry == wanted && content == CONTENT_FOLDER && folder != NULL)
                *folder = number;
        }
    }
    *cursor = entries;
    return found;
}

/* Before version 5: texts, the folders up to an empty one; both are counted from 1. */
static const char *get_old_entry(const struct unit *unit, uint64_t file, const char **folder)
{
    struct ta__cursor folders = unit->tables, cursor = unit->tables;
    while (*get_text(&cursor) != '\0' && !cursor.failed)
        continue;
    const char *name = "";
    uint64_t number = 0;
    for (uint64_t i = 1; i <= file && !cursor.failed; i++) {
        name = get_text(&cursor);
        number = ta__get_uleb(&cursor);
        ta__get_uleb(&cursor);
        ta__get_uleb(&cursor);
    }
    *folder = "";
    for (uint64_t i = 0; i < number && !folders.failed; i++)
        *folder = get_text(&folders);
    return name;
}

static void join(struct ta__line_number *line, const char *folder, const char *name)
{
    size_t length = name[0] != '/' ? strnlen(folder, sizeof line->file / 2) : 0;
    memcpy(line->file, folder, length);
    if (length != 0)
        line->file[length++] = '/';
    strncpy(line->file + length, name, sizeof line->file - 1 - length);
    line->file[sizeof line->file - 1] = '\0';
}

static void name_file(struct search *search, const struct unit *unit, uint64_t file, struct ta__line_number *line)
{
    const char *folder = "", *name;
    if (unit->version < 5) {
        name = get_old_entry(unit, file, &folder);
    } else {
        struct ta__cursor cursor = unit->tables;
        uint64_t number = 0;
        get_entry(search, unit, &cursor, UINT64_MAX, NULL);
        name = get_entry(search, unit, &cursor, file, &number);
        cursor = unit->tables;
        if (number != 0) {
            const char *home;
            folder = get_entry(search, unit, &cursor, number, NULL);
            cursor = unit->tables;
            home = get_entry(search, unit, &cursor, 0, NULL);
            size_t length = strlen(home);
            if (length != 0 && strncmp(folder, home, length) == 0 && folder[length] == '/')
                folder += length + 1;
        }
    }
    join(line, folder, name);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

struct row {
    uint64_t address, file;
    uint32_t line;
};

/* The addresses from one row to the next, which begins elsewhere. */
static void match(struct search *search, const struct unit *unit, const struct row *row, uint64_t next)
{
    for (size_t i = 0; i < search->count; i++) {
        struct ta__line_number *line = search->lines[i];
        if (line->address < row->address || line->address >= next || line->line != 0 || row->line == 0)
            continue;
        line->line = row->line;
        search->missing--;
        name_file(search, unit, row->file, line);
    }
}

struct machine {
    struct row row, last;
    int has_last;   /* in this sequence */
    int is_nowhere; /* the sequence is of code that the linker left out */
};

static void emit(struct search *search, const struct unit *unit, struct machine *machine)
{
    if (machine->has_last && !machine->is_nowhere && machine->row.address > machine->last.address)
        match(search, unit, &machine->last, machine->row.address);
    machine->last = machine->row;
    machine->has_last = 1;
}

static void begin_sequence(struct machine *machine)
{
    *machine = (struct machine){.row = {.file = 1, .line = 1}, .is_nowhere = 1};
}

/* What linkers put in place of an address that has gone: 0, or the last or last but one of all. */
static int is_nowhere(uint64_t address)
{
    return address == 0 || address >= UINT64_MAX - 1;
}

static void run_extended(struct search *search, const struct unit *unit, struct ta__cursor *cursor,
                         struct machine *machine)
{
    uint64_t length = ta__get_uleb(cursor);
    const uint8_t *bytes = ta__get_bytes(cursor, length);
    if (bytes == NULL || length == 0)
        return;
    struct ta__cursor inside = {bytes + 1, bytes + length, 0};
    if (bytes[0] == END_SEQUENCE) {
        emit(search, unit, machine);
        begin_sequence(machine);
    } else if (bytes[0] == SET_ADDRESS && length <= 9) {
        machine->row.address = ta__get_fixed(&inside, (unsigned)(length - 1));
        machine->is_nowhere = is_nowhere(machine->row.address);
    }
}

static void run_standard(struct search *search, const struct unit *unit, struct ta__cursor *cursor, uint8_t opcode,
                         struct machine *machine)
{
    struct row *row = &machine->row;
    switch (opcode) {
    case COPY:
        emit(search, unit, machine);
        return;
    case ADVANCE_PC:
        row->address += ta__get_uleb(cursor) * unit->instruction_bytes;
        return;
    case ADVANCE_LINE:
        row->line += (uint32_t)ta__get_sleb(cursor);
        return;
    case SET_FILE:
        row->file = ta__get_uleb(cursor);
        return;
    case CONST_ADD_PC:
        row->address += (uint64_t)((255 - unit->opcode_base) / unit->line_range) * unit->instruction_bytes;
        return;
    case FIXED_ADVANCE_PC:
        row->address += ta__get_fixed(cursor, 2);
        return;
    default:
        for (unsigned i = 0; i < unit->lengths[opcode - 1]; i++)
            ta__get_uleb(cursor);
    }
}

static void run_program(struct search *search, const struct unit *unit)
{
    struct ta__cursor cursor = unit->program;
    struct machine machine;
    begin_sequence(&machine);
    while (cursor.at < cursor.end && !cursor.failed && search->missing > 0) {
        uint8_t opcode = *cursor.at++;
        if (opcode >= unit->opcode_base) {
            unsigned step = (unsigned)(opcode - unit->opcode_base);
            machine.row.address += (uint64_t)(step / unit->line_range) * unit->instruction_bytes;
            machine.row.line += (uint32_t)(unit->line_base + (int)(step % unit->line_range));
            emit(search, unit, &machine);
        } else if (opcode == 0) {
            run_extended(search, unit, &cursor, &machine);
        } else {
            run_standard(search, unit, &cursor, opcode, &machine);
        }
    }
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* 0: the unit is of another version, or damaged. `cursor` is inside it, behind its length. */
static int read_header(struct ta__cursor cursor, struct unit *unit)
{
    unit->version = (uint16_t)ta__get_fixed(&cursor, 2);
    if (unit->version < 2 || unit->version > 5)
        return 0;
    if (unit->version == 5)
        ta__get_fixed(&cursor, 2); /* sizes of addresses and of segment selectors */
    uint64_t length = ta__get_fixed(&cursor, unit->offset_bytes);
    struct ta__cursor after = cursor;
    ta__get_bytes(&after, length);
    unit->instruction_bytes = (uint8_t)ta__get_fixed(&cursor, 1);
    if (unit->version >= 4)
        ta__get_fixed(&cursor, 1); /* operations of an instruction */
    ta__get_fixed(&cursor, 1);     /* is a row a statement unless said otherwise? */
    unit->line_base = (int8_t)ta__get_fixed(&cursor, 1);
    unit->line_range = (uint8_t)ta__get_fixed(&cursor, 1);
    unit->opcode_base = (uint8_t)ta__get_fixed(&cursor, 1);
    unit->lengths = ta__get_bytes(&cursor, unit->opcode_base != 0 ? unit->opcode_base - 1u : 0);
    if (cursor.failed || after.failed || after.at < cursor.at || unit->line_range == 0 || unit->opcode_base == 0)
        return 0;
    unit->tables = (struct ta__cursor){cursor.at, after.at, 0};
    unit->program = (struct ta__cursor){after.at, after.end, 0};
    return 1;
}

static void search_file(struct search *search)
{
    const struct ta__debug_section *section = section_of(search, PROGRAMS);
    if (section->size == 0)
        return;
    struct ta__cursor cursor = {section->bytes, section->bytes + section->size, 0};
    while (cursor.at < cursor.end && search->missing > 0) {
        struct unit unit = {.offset_bytes = 4};
        uint64_t length = ta__get_fixed(&cursor, 4);
        if (length == UINT32_MAX) {
            unit.offset_bytes = 8;
            length = ta__get_fixed(&cursor, 8);
        }
        const uint8_t *at = ta__get_bytes(&cursor, length);
        if (at == NULL)
            return;
        if (read_header((struct ta__cursor){at, at + length, 0}, &unit))
            run_program(search, &unit);
    }
}

void ta__lines_read(const char *path, const uint8_t *build_id, unsigned build_id_length, struct ta__line_number **lines,
                    size_t count)
{
    int saved_errno = errno;
    char debug[128];
    const char *paths[] = {path, ta__elf_debug_path(build_id, build_id_length, debug) ? debug : NULL};
    struct search search = {.lines = lines, .count = count, .missing = count};
    for (size_t i = 0; i < sizeof paths / sizeof *paths && search.missing > 0; i++) {
        struct ta__elf_file file;
        if (paths[i] == NULL || !ta__elf_open(&file, paths[i], build_id, build_id_length))
            continue;
        search.file = &file;
        search_file(&search);
        for (int which = 0; which < SECTIONS; which++) {
            ta__debug_section_close(&search.sections[which]);
            search.is_open[which] = 0;
        }
        ta__elf_close(&file);
    }
    errno = saved_errno;
}
