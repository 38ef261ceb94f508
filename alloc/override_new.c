/* override_new.c: C++'s operator new and delete, in C under their linker names, so that the library needs no libstdc++.
 *
 * Whoever calls operator new has libstdc++ in the process, which provides what only it can: the new handler, throwing
 * std::bad_alloc, and catching. Its names are weak here; in a process without them new answers NULL.
 * Each form passes its own caller on: the frame that a trace shows first is the one that said `new`. */
#include "alloc/alloc.h"
#include "alloc/entry.h"

#if TRACEALLOC_OVERRIDE

#include <dlfcn.h>

typedef void (*new_handler)(void);
extern new_handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
extern void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak, noreturn));
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* A function of libstdc++. Where only a plugin loaded it, the weak names found nothing when we were loaded. All static,
 * there is no dlopen, and the weak names are all there is; even its name would make the linker warn. */
TA_COLD static void *in_libstdcxx(const char *name)
{
    void *(*open)(const char *path, int mode) = NULL;
    if (dlsym != NULL)
        *(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
    void *handle = open != NULL ? open("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return handle != NULL ? dlsym(handle, name) : NULL;
}

static new_handler current_handler(void)
{
    new_handler (*get)(void) = get_new_handler;
    if (get == NULL)
        *(void **)&get = in_libstdcxx("_ZSt15get_new_handlerv");
    return get != NULL ? get() : NULL;
}

/* Returns only in a process without libstdc++: then new answers NULL. */
static void throw_no_memory(void)
{
    void (*throw)(void) = throw_bad_alloc;
    if (throw == NULL)
        *(void **)&throw = in_libstdcxx("_ZSt17__throw_bad_allocv");
    if (throw != NULL)
        throw();
}

static void *try_new(size_t size, size_t alignment, struct ta__caller caller)
{
    return ta__allocate_aligned(alignment != 0 ? alignment : 16, size, caller);
}

/* Asks the program's handler for help until there is memory, or no handler. */
TA_COLD static void *try_new_again(size_t size, size_t alignment, struct ta__caller caller)
{
    for (new_handler handler; (handler = current_handler()) != NULL;) {
        handler();
        void *user = try_new(size, alignment, caller);
        if (user != NULL)
            return user;
    }
    return NULL;
}

TA_INLINE void *new_or_throw(size_t size, size_t alignment, struct ta__caller caller)
{
    void *user = try_new(size, alignment, caller);
    if (TA_UNLIKELY(user == NULL)) {
        user = try_new_again(size, alignment, caller);
        if (user == NULL)
            throw_no_memory();
    }
    return user;
}

/* Plain new and new[] are in malloc.c: what is not common there comes here. */
void *ta__new_slow(size_t size, struct ta__caller caller)
{
    return new_or_throw(size, 0, caller);
}

/* A handler may throw, and a nothrow form must catch that and answer NULL. C cannot catch; libstdc++'s own nothrow form
 * can, and what it tries is our throwing form. All static, that form is not there, and such a throw ends the process.
 */
TA_COLD static void *try_new_caught(size_t size, size_t alignment, struct ta__caller caller)
{
    if (current_handler() == NULL)
        return NULL;
    static const char nothrow;
    if (alignment == 0) {
        void *(*form)(size_t, const void *) = NULL;
        *(void **)&form = in_libstdcxx("_ZnwmRKSt9nothrow_t");
        if (form != NULL)
            return form(size, &nothrow);
    } else {
        void *(*form)(size_t, size_t, const void *) = NULL;
        *(void **)&form = in_libstdcxx("_ZnwmSt11align_val_tRKSt9nothrow_t");
        if (form != NULL)
            return form(size, alignment, &nothrow);
    }
    return try_new_again(size, alignment, caller);
}

TA_INLINE void *new_or_null(size_t size, size_t alignment, struct ta__caller caller)
{
    void *user = try_new(size, alignment, caller);
    return TA_LIKELY(user != NULL) ? user : try_new_caught(size, alignment, caller);
}

/* name, parameters, expression */
#define OPERATOR_NEW(name, parameters, expression)                                                                     \
    TA_ENTRY void *name parameters;                                                                                    \
    TA_ENTRY void *name parameters                                                                                     \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), new_or_throw(size, alignment, TA__CALLER()))
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), new_or_throw(size, alignment, TA__CALLER()))

#define NOTHROW __attribute__((unused)) const void *nothrow
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t size, NOTHROW), new_or_null(size, 0, TA__CALLER()))
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t size, NOTHROW), new_or_null(size, 0, TA__CALLER()))
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, NOTHROW),
             new_or_null(size, alignment, TA__CALLER()))
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, NOTHROW),
             new_or_null(size, alignment, TA__CALLER()))

#endif
