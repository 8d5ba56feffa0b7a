/* plugin.h - operators of one's own in a shared library: what such a library exports, and how it is loaded. See
 * docs/custom_operators.md. */
#ifndef ONX_PLUGIN_H
#define ONX_PLUGIN_H

#include <onx/kernel.h>
#include <onx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of onx_op_def, onx/kernel.h or onx_value that a plugin has to be compiled again for. */
#define ONX_PLUGIN_EDITION 1u

/* What a plugin is compiled for; the library compares all of it with its own. */
typedef struct onx_plugin_head {
    uint32_t edition;                                      /* ONX_PLUGIN_EDITION */
    uint32_t plugin, op_def, kernel, prepare, work, value; /* sizeof of the structs that both sides touch */
} onx_plugin_head;
/* The first member of an onx_plugin. */
#define ONX_PLUGIN_HEAD                                                                                                \
    {                                                                                                                  \
        ONX_PLUGIN_EDITION, (uint32_t)sizeof(onx_plugin), (uint32_t)sizeof(onx_op_def), (uint32_t)sizeof(onx_kernel),  \
            (uint32_t)sizeof(onx_prepare), (uint32_t)sizeof(onx_work), (uint32_t)sizeof(onx_value)                     \
    }

typedef struct onx_plugin {
    onx_plugin_head head;               /* ONX_PLUGIN_HEAD */
    const char *name, *version;         /* for messages; NULL: none */
    const onx_op_def *const *operators; /* ends with NULL; each as for onx_op_register */
} onx_plugin;

/* The one function that a plugin defines and exports. What it returns lasts as long as the plugin is loaded; NULL: it
 * cannot be used here. */
#ifdef __cplusplus
#define ONX_PLUGIN_ENTRY extern "C" ONX_API const onx_plugin *onx_plugin_entry(void)
#else
#define ONX_PLUGIN_ENTRY                                                                                               \
    ONX_API const onx_plugin *onx_plugin_entry(void);                                                                  \
    ONX_API const onx_plugin *onx_plugin_entry(void)
#endif
typedef const onx_plugin *(*onx_plugin_entry_function)(void);

/* Loads the shared library and registers its operators. `path` is that of a file, also without a slash: nothing is
 * searched for, and no variable of the environment is read. A plugin is code that runs with all that the process
 * may do: never load an untrusted one. It stays loaded until the registry is freed. Where an operator is refused
 * the ones before it stay. ONX_E_IO when the file cannot be loaded, ONX_E_INVALID without onx_plugin_entry,
 * ONX_E_UNSUPPORTED for a plugin that was compiled for another edition, and in programs that cannot load anything. */
ONX_API ONX_OWN_THREAD onx_status onx_plugin_load(onx_registry *registry, const char *path);

#ifdef __cplusplus
}
#endif
#endif
