# What configure asks of the compiler. Loops are shell loops: a one-letter variable of an m4 loop
# would be replaced wherever that letter stands in configure.

# NP_DROP_OLD_STANDARD
# CFLAGS stand last in every command, so an older -std in them (scripts that build netperf itself
# set -std=gnu89) would undo ours. Take it out, and say so. Goes before AC_PROG_CC.
AC_DEFUN([NP_DROP_OLD_STANDARD], [
  np_kept=
  for np_flag in $CFLAGS; do
    case $np_flag in
    -ansi|-std=[[cg]]*[[89]]9|-std=[[cg]]*90|-std=[[cg]]*9x|-std=iso9899:199*)
      AC_MSG_NOTICE([leaving $np_flag out of CFLAGS: the sources are C11]) ;;
    *)
      np_kept="$np_kept${np_kept:+ }$np_flag" ;;
    esac
  done
  test -z "$CFLAGS" || CFLAGS=$np_kept
])

# NP_PROG_CC_C11
# Make CC a C11 compiler with atomics, or stop.
AC_DEFUN([NP_PROG_CC_C11], [
  AC_CACHE_CHECK([what makes $CC a C11 compiler], [np_cv_c11], [
    np_cc=$CC
    np_cv_c11=unsupported
    for np_flag in "" -std=gnu11; do
      CC="$np_cc $np_flag"
      AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
          #include <stdatomic.h>
          #include <stdint.h>
          _Static_assert(__STDC_VERSION__ >= 201112L, "C11");
          static _Alignas(64) _Atomic uint64_t counter;]],
        [[atomic_store_explicit(&counter, 1, memory_order_relaxed);]])],
        [np_cv_c11=${np_flag:-nothing}])
      test "$np_cv_c11" = unsupported || break
    done
    CC=$np_cc
  ])
  case $np_cv_c11 in
  unsupported) AC_MSG_ERROR([$CC is no C11 compiler with <stdatomic.h>: try gcc 4.9, clang 3.6 or later]) ;;
  -*) CC="$CC $np_cv_c11" ;;
  esac
])

# NP_CC_FLAGS(VARIABLE, FLAGS)
# Append those of FLAGS to VARIABLE that the compiler takes: all at once, or each by itself.
AC_DEFUN([NP_CC_FLAGS], [
  np_saved_cflags=$CFLAGS
  np_flags="m4_normalize([$2])"
  for np_flag in "$np_flags" $np_flags; do
    AC_MSG_CHECKING([whether $CC takes $np_flag])
    CFLAGS="$np_saved_cflags -Werror $np_flag"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int main(void) { return 0; }]])],
      [AC_MSG_RESULT([yes])
       $1="$$1${$1:+ }$np_flag"
       test "$np_flag" != "$np_flags" || break],
      [AC_MSG_RESULT([no])])
  done
  CFLAGS=$np_saved_cflags
])

# NP_LIB_ATOMIC
# Add -latomic to LIBS where 64-bit atomic operations are calls into a library.
AC_DEFUN([NP_LIB_ATOMIC], [
  AC_CACHE_CHECK([for the library of 64-bit atomics], [np_cv_lib_atomic], [
    np_saved_libs=$LIBS
    np_cv_lib_atomic=unknown
    for np_lib in "" -latomic; do
      LIBS="$np_lib $np_saved_libs"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[
          #include <stdatomic.h>
          #include <stdint.h>
          static _Atomic uint64_t counter;]],
        [[atomic_fetch_add(&counter, 1);
          return atomic_load(&counter) != 1;]])],
        [np_cv_lib_atomic=${np_lib:-none needed}])
      test "$np_cv_lib_atomic" = unknown || break
    done
    LIBS=$np_saved_libs
  ])
  case $np_cv_lib_atomic in
  unknown) AC_MSG_ERROR([no 64-bit atomics, not even with -latomic: install libatomic]) ;;
  -*) LIBS="$np_cv_lib_atomic $LIBS" ;;
  esac
])
