/* Plugins that the library must refuse, one for each macro BAD_... that is defined. */
#include <onx/plugin.h>

#ifdef BAD_NONE
ONX_API int onx_example_unused(void);
ONX_API int onx_example_unused(void)
{
    return 0;
}
#else
#ifndef BAD_REFUSES
static onx_plugin plugin = { .head = ONX_PLUGIN_HEAD };
#endif

ONX_PLUGIN_ENTRY
{
#ifdef BAD_EDITION
    plugin.head.edition += 1000;
#endif
#ifdef BAD_SIZES
    plugin.head.kernel += 8;
#endif
#ifdef BAD_REFUSES
    return NULL;
#else
    return &plugin;
#endif
}
#endif
