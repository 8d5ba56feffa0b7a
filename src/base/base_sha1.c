/* base_sha1.c - SHA-1 by OpenSSL's libcrypto, an optional library. */
#include "base/base.h"

#ifdef ONX_WITH_CRYPTO

#include <openssl/evp.h>

#define FUNCTIONS(F)                                                                                                   \
    F(EVP_MD_CTX_new) F(EVP_MD_CTX_free) F(EVP_DigestInit_ex) F(EVP_DigestUpdate) F(EVP_DigestFinal_ex) F(EVP_sha1)

typedef struct crypto {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} crypto;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

struct onxi_sha1 {
    onx_ctx *cx;
    const crypto *lib;
    EVP_MD_CTX *md;
    bool failed;
};

onx_status onxi_sha1_new(onx_ctx *cx, onxi_sha1 **out)
{
    *out = NULL;
    const crypto *lib = ONXI_FUNCTIONS(ONXI_LIBRARY_CRYPTO, function_names);
    if (!lib)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a checksum %s",
                         onxi_library_missing(ONXI_LIBRARY_CRYPTO));
    onxi_sha1 *h = onxi_resize(cx, NULL, 0, sizeof *h);
    if (!h)
        return ONX_E_MEMORY;
    *h = (onxi_sha1){ .cx = cx, .lib = lib, .md = lib->EVP_MD_CTX_new() };
    if (!h->md) {
        onxi_release(cx, h, sizeof *h);
        return onxi_no_memory(cx);
    }
    h->failed = lib->EVP_DigestInit_ex(h->md, lib->EVP_sha1(), NULL) != 1;
    *out = h;
    return ONX_OK;
}

void onxi_sha1_add(onxi_sha1 *h, onx_str bytes)
{
    h->failed |= h->lib->EVP_DigestUpdate(h->md, bytes.ptr, bytes.len) != 1;
}

onx_status onxi_sha1_end(onxi_sha1 *h, char hex_out[41])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool failed = h->lib->EVP_DigestFinal_ex(h->md, digest, &len) != 1 || len != 20 || h->failed;
    onx_ctx *cx = h->cx;
    for (unsigned i = 0; i < 20 && !failed; i++) {
        hex_out[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex_out[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex_out[failed ? 0 : 40] = 0;
    onxi_sha1_free(h);
    if (failed)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "libcrypto could not compute a SHA-1");
    return ONX_OK;
}

void onxi_sha1_free(onxi_sha1 *h)
{
    if (!h)
        return;
    h->lib->EVP_MD_CTX_free(h->md);
    onxi_release(h->cx, h, sizeof *h);
}

#else

onx_status onxi_sha1_new(onx_ctx *cx, onxi_sha1 **out)
{
    *out = NULL;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a checksum %s", onxi_library_missing(ONXI_LIBRARY_CRYPTO));
}

void onxi_sha1_add(onxi_sha1 *h, onx_str bytes)
{
    (void)h;
    (void)bytes;
}

onx_status onxi_sha1_end(onxi_sha1 *h, char hex_out[41])
{
    (void)h;
    hex_out[0] = 0;
    return ONX_E_UNSUPPORTED;
}

void onxi_sha1_free(onxi_sha1 *h)
{
    (void)h;
}

#endif
