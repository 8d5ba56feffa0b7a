/* base_sha1.c - SHA-1 by OpenSSL's libcrypto, an optional dependency. */
#include "base/base.h"

#ifdef ONX_WITH_CRYPTO

#include <openssl/evp.h>

struct onxi_sha1 {
    onx_ctx *cx;
    EVP_MD_CTX *md;
    bool failed;
};

onx_status onxi_sha1_new(onx_ctx *cx, onxi_sha1 **out)
{
    *out = NULL;
    onxi_sha1 *h = onxi_resize(cx, NULL, 0, sizeof *h);
    if (!h)
        return ONX_E_MEMORY;
    *h = (onxi_sha1){ .cx = cx, .md = EVP_MD_CTX_new() };
    if (!h->md) {
        onxi_release(cx, h, sizeof *h);
        return onxi_no_memory(cx);
    }
    h->failed = EVP_DigestInit_ex(h->md, EVP_sha1(), NULL) != 1;
    *out = h;
    return ONX_OK;
}

void onxi_sha1_add(onxi_sha1 *h, onx_str bytes)
{
    h->failed |= EVP_DigestUpdate(h->md, bytes.ptr, bytes.len) != 1;
}

onx_status onxi_sha1_end(onxi_sha1 *h, char hex_out[41])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool failed = EVP_DigestFinal_ex(h->md, digest, &len) != 1 || len != 20 || h->failed;
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
    EVP_MD_CTX_free(h->md);
    onxi_release(h->cx, h, sizeof *h);
}

#else

onx_status onxi_sha1_new(onx_ctx *cx, onxi_sha1 **out)
{
    *out = NULL;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                     "onx was built without libcrypto, which computes checksums (ONX_CRYPTO)");
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
