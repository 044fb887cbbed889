/* Is this a build with a sanitizer? gcc defines macros then, clang has __has_feature(). */
#ifndef NP_BASE_SANITIZED_H
#define NP_BASE_SANITIZED_H

#ifdef __has_feature
#define NP_HAS_FEATURE(name) __has_feature(name)
#else
#define NP_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || NP_HAS_FEATURE(thread_sanitizer)
#define NP_THREAD_SANITIZED 1
#else
#define NP_THREAD_SANITIZED 0
#endif

#if NP_THREAD_SANITIZED || defined(__SANITIZE_ADDRESS__) || NP_HAS_FEATURE(address_sanitizer) ||   \
    NP_HAS_FEATURE(memory_sanitizer)
#define NP_SANITIZED 1
#else
#define NP_SANITIZED 0
#endif

#endif
