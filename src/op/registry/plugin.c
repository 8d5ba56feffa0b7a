/* plugin.c - shared libraries with operators: loads them, and checks that they match this library. */
#include "op/registry/registry.h"

#include <onx/plugin.h>

#include <stdio.h>

/* ---- loading ---- */

/* A plugin calls functions of this library without being linked against it, so its symbols have to be visible globally.
 * If this library was loaded privately (dlopen with RTLD_LOCAL, as interpreters do), it is made visible. */
static void show_ourselves(void)
{
    onx_status (*const here)(onx_registry *, const char *) = onx_plugin_load;
    void *address;
    memcpy(&address, &here, sizeof address);
    onxi_platform_library_show(address);
}

/* Without a slash, the dynamic linker would search its own folders. */
static const char *with_slash(onx_registry *registry, const char *path)
{
    if (strchr(path, '/'))
        return onxi_registry_text(registry, onx_str_of(path));
    char *near = onx_arena_alloc(registry->arena, strlen(path) + 3);
    if (near)
        sprintf(near, "./%s", path);
    return near;
}

static onx_status open_plugin(onx_registry *registry, const char *path, onxi_plugin **out)
{
    onxi_plugin *p = ONXI_NEW(registry->arena, onxi_plugin);
    if (!p || !(p->path = with_slash(registry, path)))
        return ONX_E_MEMORY;
    show_ourselves();
    p->handle = onxi_platform_library_open(p->path, true);
    if (!p->handle)
        return onxi_fail(registry->cx, ONX_E_IO, ONXI_NOWHERE, "the plugin %s cannot be loaded: %s", path,
                         onxi_platform_library_error());
    p->next = registry->plugins;
    registry->plugins = p;
    *out = p;
    return ONX_OK;
}

void onxi_registry_close_plugins(onx_registry *registry)
{
    for (onxi_plugin *p = registry->plugins; p; p = p->next)
        onxi_platform_library_close(p->handle);
}

/* ---- version check ---- */

static onx_status check_head(onx_registry *registry, const char *path, const onx_plugin_head *head)
{
    static const onx_plugin_head ours = ONX_PLUGIN_HEAD;
    if (head->edition != ours.edition)
        return onxi_fail(
            registry->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
            "the plugin %s was compiled for edition %lu of the interface for plugins; this library has %lu", path,
            (unsigned long)head->edition, (unsigned long)ours.edition);
    if (memcmp(head, &ours, sizeof ours) != 0)
        return onxi_fail(registry->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "the plugin %s was compiled with headers whose structs have other sizes than those of onx %s",
                         path, onx_version_text());
    return ONX_OK;
}

static onx_status load(onx_registry *registry, const char *path)
{
    onxi_plugin *p = NULL;
    onx_plugin_entry_function entry;
    ONX_TRY(open_plugin(registry, path, &p));
    void *found = onxi_platform_library_find(p->handle, "onx_plugin_entry");
    if (!found)
        return onxi_fail(registry->cx, ONX_E_INVALID, ONXI_NOWHERE,
                         "%s is no plugin: it does not export onx_plugin_entry", path);
    memcpy(&entry, &found, sizeof entry);
    const onx_plugin *plugin = entry();
    if (!plugin)
        return onxi_fail(registry->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "the plugin %s says that it cannot be used here", path);
    ONX_TRY(check_head(registry, path, &plugin->head));
    for (size_t i = 0; plugin->operators && plugin->operators[i]; i++)
        ONX_TRY(onx_op_register(registry, plugin->operators[i]));
    return ONX_OK;
}

onx_status onx_plugin_load(onx_registry *registry, const char *path)
{
    ONXI_NEED(NULL, registry);
    ONXI_NEED(registry->cx, path);
    ONXI_CALL(registry->cx, load(registry, path));
}
