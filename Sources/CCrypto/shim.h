#ifndef BELLHOP_CCRYPTO_SHIM_H
#define BELLHOP_CCRYPTO_SHIM_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
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

// Keeps libcrypto from asking for a password on the terminal.
static inline int ccrypto_no_password(char *buffer, int size, int writing, void *context) { return -1; }

// Returns the private key of a PEM text without a password; NULL if there is none. The caller frees it.
static inline EVP_PKEY *ccrypto_private_key(const void *pem, int count) {
    BIO *text = BIO_new_mem_buf(pem, count);
    if (text == NULL) return NULL;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(text, NULL, ccrypto_no_password, NULL);
    BIO_free(text);
    return key;
}

enum { ccrypto_p256_scalar_count = 32, ccrypto_p256_point_count = 65 };

// Returns a private key of the curve P-256 from its number in big endian; NULL if the number is out of range. The caller
// frees it. libcrypto does not derive the public point, which signing and the agreement on a key need.
static inline EVP_PKEY *ccrypto_p256_private_key(const uint8_t *scalar) {
    EVP_PKEY *key = NULL;
    uint8_t point[ccrypto_p256_point_count];
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BIGNUM *number = BN_secure_new();
    EC_POINT *product = group != NULL ? EC_POINT_new(group) : NULL;
    if (number != NULL && product != NULL && BN_bin2bn(scalar, ccrypto_p256_scalar_count, number) != NULL
        && !BN_is_zero(number) && BN_cmp(number, EC_GROUP_get0_order(group)) < 0
        && EC_POINT_mul(group, product, number, NULL, NULL, NULL) == 1
        && EC_POINT_point2oct(group, product, POINT_CONVERSION_UNCOMPRESSED, point, sizeof point, NULL) == sizeof point) {
        uint8_t digits[ccrypto_p256_scalar_count];
        BN_bn2nativepad(number, digits, sizeof digits);
        OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"P-256", 0),
            OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point),
            OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, digits, sizeof digits),
            OSSL_PARAM_construct_end(),
        };
        EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
        if (context != NULL && EVP_PKEY_fromdata_init(context) == 1) {
            EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, parameters);
        }
        EVP_PKEY_CTX_free(context);
        OPENSSL_cleanse(digits, sizeof digits);
    }
    EC_POINT_free(product);
    BN_clear_free(number);
    EC_GROUP_free(group);
    return key;
}

static inline EVP_PKEY *ccrypto_new_p256_key(void) { return EVP_EC_gen("P-256"); }

// Writes the number of a private key of P-256 in big endian.
static inline int ccrypto_p256_scalar(const EVP_PKEY *key, uint8_t *scalar) {
    BIGNUM *number = NULL;
    int done = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1
        && BN_bn2binpad(number, scalar, ccrypto_p256_scalar_count) == ccrypto_p256_scalar_count;
    BN_clear_free(number);
    return done;
}

// Writes the public point of a key of P-256 in uncompressed form. Returns 0 for a key of another kind.
static inline int ccrypto_p256_point(const EVP_PKEY *key, uint8_t *point) {
    char group[32];
    if (EVP_PKEY_is_a(key, "EC") != 1 || EVP_PKEY_get_group_name(key, group, sizeof group, NULL) != 1
        || OBJ_txt2nid(group) != NID_X9_62_prime256v1) {
        return 0;
    }
    size_t count = 0;
    return EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, ccrypto_p256_point_count, &count) == 1
        && count == ccrypto_p256_point_count;
}

// Writes the two numbers of an ECDSA signature, each with a fixed size (RFC 7518, 3.4), from its DER form.
static inline int ccrypto_fixed_signature(const uint8_t *der, long count, uint8_t *result, int half) {
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, count);
    int done = signature != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(signature), result, half) == half
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), result + half, half) == half;
    ECDSA_SIG_free(signature);
    return done;
}

#endif
