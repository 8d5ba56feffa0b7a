/* plugin.h - custom operators in a shared library: what the library exports and how it is loaded. See
 * docs/custom_operators.md. */
#ifndef ONX_PLUGIN_H
#define ONX_PLUGIN_H

#include <onx/kernel.h>
#include <onx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented with every change of onx_op_def, onx/kernel.h or onx_value after which plugins have to be recompiled. */
#define ONX_PLUGIN_EDITION 1u

/* Version information that a plugin was compiled with; the library compares all of it with its own. */
typedef struct onx_plugin_head {
    uint32_t edition;                                      /* ONX_PLUGIN_EDITION */
    uint32_t plugin, op_def, kernel, prepare, work, value; /* sizeof of the structs that plugin and library share */
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

/* The one function that a plugin defines and exports. The result must remain valid as long as the plugin is loaded;
 * NULL: the plugin cannot be used here. */
#ifdef __cplusplus
#define ONX_PLUGIN_ENTRY extern "C" ONX_API const onx_plugin *onx_plugin_entry(void)
#else
#define ONX_PLUGIN_ENTRY                                                                                               \
    ONX_API const onx_plugin *onx_plugin_entry(void);                                                                  \
    ONX_API const onx_plugin *onx_plugin_entry(void)
#endif
typedef const onx_plugin *(*onx_plugin_entry_function)(void);

/* Loads the shared library and registers its operators. `path` is always the path of a file, also without a slash: no
 * folder is searched and no environment variable is read. A plugin is code that runs with all rights of the process:
 * never load an untrusted one. It stays loaded until the registry is freed. If an operator is refused, the operators
 * before it stay registered. ONX_E_IO when the file cannot be loaded, ONX_E_INVALID without onx_plugin_entry,
 * ONX_E_UNSUPPORTED for a plugin that was compiled for another edition, and in programs that cannot load shared
 * libraries. */
ONX_API ONX_OWN_THREAD onx_status onx_plugin_load(onx_registry *registry, const char *path);

#ifdef __cplusplus
}
#endif
#endif
