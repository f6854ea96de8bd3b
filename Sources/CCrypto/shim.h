#ifndef BELLHOP_CCRYPTO_SHIM_H
#define BELLHOP_CCRYPTO_SHIM_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rsa.h>

// libcrypto takes the parts of a key as a list of pointers, including pointers to names. Swift strings do not keep a fixed
// address for as long as such a list is used, so the lists are built here.

static inline int ccrypto_hmac_sha256_init(EVP_MAC_CTX *context, const uint8_t *key, size_t count) {
    // A null pointer would leave the key unchanged.
    static const uint8_t none = 0;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_init(context, key != NULL ? key : &none, count, parameters);
}

// Returns a public key made from its parts; NULL if they are invalid. The caller frees it.
static inline EVP_PKEY *ccrypto_public_key(const char *type, OSSL_PARAM *parameters) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (context != NULL && EVP_PKEY_fromdata_init(context) == 1) {
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
    }
    EVP_PKEY_CTX_free(context);
    return key;
}

// Takes a point of an elliptic curve in uncompressed form (SEC 1, 2.3.3). libcrypto refuses a point off the curve.
static inline EVP_PKEY *ccrypto_ec_public_key(const char *curve, const uint8_t *point, size_t count) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)curve, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, count),
        OSSL_PARAM_construct_end(),
    };
    return ccrypto_public_key("EC", parameters);
}

// Takes modulus and exponent in the byte order of the machine, as libcrypto expects them.
static inline EVP_PKEY *ccrypto_rsa_public_key(
    const uint8_t *modulus, size_t modulus_count, const uint8_t *exponent, size_t exponent_count) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_RSA_N, (unsigned char *)modulus, modulus_count),
        OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_RSA_E, (unsigned char *)exponent, exponent_count),
        OSSL_PARAM_construct_end(),
    };
    return ccrypto_public_key("RSA", parameters);
}

#endif
