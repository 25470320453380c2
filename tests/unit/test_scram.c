/* SPDX-License-Identifier: BSD-3-Clause */
/* SCRAM with the examples of RFC 5802 and RFC 7677, and with servers that do not know the password.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "proto/server/scram.h"

struct example {
    enum scram_hash hash;
    const char *nonce, *first, *server_first, *final, *server_final;
};

static const struct example examples[] = {
    {SCRAM_SHA1, "fyko+d2lbbFgONRv9qkxdawL", "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
     "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
     "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
     "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="},
    {SCRAM_SHA256, "rOprNGfwEbeRWgbNEkqO", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
     "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
     "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
     "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
     "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="},
    /* No RFC has one; made with Python's hashlib and hmac. */
    {SCRAM_SHA512, "rOprNGfwEbeRWgbNEkqO", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
     "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
     "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p="
     "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
     "v=ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw=="},
};

static void the_examples_of_the_standards(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *x = &examples[i];
        struct scram s;
        struct scram_cache cache = {0};
        char out[SCRAM_MESSAGE_MAX];
        const char *error;
        size_t len = scram_begin(&s, x->hash, SLICE_LIT("user"), x->nonce, out);
        assert_true(slice_equal(slice_make(out, len), slice_of(x->first)));
        for (int again = 0; again < 2; again++) { /* the second time from the cache */
            len = scram_proof(&s, SLICE_LIT("pencil"), slice_of(x->server_first), &cache, out,
                              &error);
            assert_true(slice_equal(slice_make(out, len), slice_of(x->final)));
        }
        assert_true(scram_verify(&s, slice_of(x->server_final)));
        assert_false(scram_verify(&s, SLICE_LIT("v=rmF9pqV8S7suAoZWja4dJRkFsLQ=")));
        assert_false(scram_verify(&s, SLICE_LIT("v=")));
        assert_false(scram_verify(&s, SLICE_LIT("")));
        assert_false(scram_verify(&s, SLICE_LIT("e=other-error")));
        /* Another password: another proof, and the server's signature is wrong. */
        struct scram_cache other = {0};
        len = scram_proof(&s, SLICE_LIT("pencils"), slice_of(x->server_first), &other, out, &error);
        assert_false(slice_equal(slice_make(out, len), slice_of(x->final)));
        assert_false(scram_verify(&s, slice_of(x->server_final)));
    }
}

static void a_cache_is_for_one_salt_and_count(void **state)
{
    (void)state;
    struct scram s;
    struct scram_cache cache = {0}, fresh = {0};
    char out[SCRAM_MESSAGE_MAX], again[SCRAM_MESSAGE_MAX];
    const char *error;
    static const char *const challenges[] = {"r=abcd,s=QSXCR+Q6sek8bf92,i=4096",
                                             "r=abcd,s=QSXCR+Q6sek8bf93,i=4096",
                                             "r=abcd,s=QSXCR+Q6sek8bf92,i=4097"};
    (void)scram_begin(&s, SCRAM_SHA1, SLICE_LIT("u"), "abc", out);
    for (size_t i = 0; i < 3; i++) {
        fresh.filled = false;
        size_t len = scram_proof(&s, SLICE_LIT("p"), slice_of(challenges[i]), &cache, out, &error);
        assert_int_equal(
            scram_proof(&s, SLICE_LIT("p"), slice_of(challenges[i]), &fresh, again, &error), len);
        assert_memory_equal(out, again, len);
    }
}

static void names_are_escaped(void **state)
{
    (void)state;
    struct scram s;
    char out[SCRAM_MESSAGE_MAX], longest[SCRAM_USER_MAX];
    size_t len = scram_begin(&s, SCRAM_SHA512, SLICE_LIT("a,b=c"), "xyz", out);
    assert_true(slice_equal(slice_make(out, len), SLICE_LIT("n,,n=a=2Cb=3Dc,r=xyz")));
    memset(longest, ',', sizeof longest);
    len = scram_begin(&s, SCRAM_SHA512, slice_make(longest, sizeof longest), "xyz", out);
    assert_int_equal(len, 3 + 2 + 3 * sizeof longest + 6);
}

static void refused(const char *server_first, const char *reason)
{
    struct scram s;
    struct scram_cache cache = {0};
    char out[SCRAM_MESSAGE_MAX];
    const char *error = "";
    (void)scram_begin(&s, SCRAM_SHA256, SLICE_LIT("user"), "abc", out);
    assert_int_equal(scram_proof(&s, SLICE_LIT("pw"), slice_of(server_first), &cache, out, &error),
                     0);
    assert_string_equal(error, reason);
}

static void servers_that_are_not_to_be_trusted(void **state)
{
    (void)state;
    const char *unreadable = "its SCRAM challenge cannot be read";
    refused("r=abcd,s=QSXCR+Q6sek8bf92,i=4095", "its SCRAM iterations are fewer than 4096");
    refused("r=abcd,s=QSXCR+Q6sek8bf92,i=1", "its SCRAM iterations are fewer than 4096");
    refused("r=abcd,s=QSXCR+Q6sek8bf92,i=200001", "its SCRAM iterations are more than 200000");
    refused("r=abc,s=QSXCR+Q6sek8bf92,i=4096", "its SCRAM nonce does not begin with the proxy's");
    refused("r=xbcd,s=QSXCR+Q6sek8bf92,i=4096", "its SCRAM nonce does not begin with the proxy's");
    refused("r=abcd,s=QSX,i=4096", "its SCRAM salt cannot be read");
    refused("r=abcd,s=Q=XC,i=4096", "its SCRAM salt cannot be read");
    refused("r=abcd,i=4096", unreadable);
    refused("r=abcd,s=,i=4096", unreadable);
    refused("m=ext,r=abcd,s=QSXCR+Q6sek8bf92,i=4096", unreadable);
    refused("r=abcd,s=QSXCR+Q6sek8bf92,i=-1", unreadable);
    refused("", unreadable);
    char long_one[600];
    memset(long_one, 'a', sizeof long_one);
    memcpy(long_one, "r=abc", 5);
    memcpy(long_one + 570, ",s=QSXCR+Q6sek8bf92,i=4096", 27);
    refused(long_one, unreadable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standards),
        cmocka_unit_test(a_cache_is_for_one_salt_and_count),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(servers_that_are_not_to_be_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
