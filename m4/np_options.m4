# The options of our configure, and those of netperf's that it takes without a word.

# NP_ENABLE_WERROR
AC_DEFUN([NP_ENABLE_WERROR], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [a warning of the compiler fails the build])],
    [], [enable_werror=no])
  test "$enable_werror" = no || NP_CFLAGS="$NP_CFLAGS -Werror"
])

# NP_ENABLE_ANALYZER
AC_DEFUN([NP_ENABLE_ANALYZER], [
  AC_ARG_ENABLE([analyzer],
    [AS_HELP_STRING([--enable-analyzer], [build with gcc's static analyzer (slow)])],
    [], [enable_analyzer=no])
  if test "$enable_analyzer" != no; then
    np_before=$NP_CFLAGS
    NP_CC_FLAGS([NP_CFLAGS], [-fanalyzer])
    test "$NP_CFLAGS" != "$np_before" || AC_MSG_ERROR([--enable-analyzer: $CC has no -fanalyzer])
  fi
])

# NP_ENABLE_SANITIZER
# The programs and the tests are linked with the sanitizers, and the first finding ends them.
AC_DEFUN([NP_ENABLE_SANITIZER], [
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=LIST],
      [build with -fsanitize=LIST: address,undefined or thread])],
    [], [enable_sanitizer=no])
  AS_CASE([$enable_sanitizer],
    [no], [],
    [yes], [AC_MSG_ERROR([--enable-sanitizer: say which, as in --enable-sanitizer=address,undefined])],
    [np_saved_cflags=$CFLAGS
     np_sanitize="-fsanitize=$enable_sanitizer -fno-sanitize-recover=all"
     CFLAGS="$CFLAGS $np_sanitize"
     AC_MSG_CHECKING([whether $CC links with -fsanitize=$enable_sanitizer])
     AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
       [AC_MSG_RESULT([no])
        AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer: $CC cannot link such a program])])
     CFLAGS=$np_saved_cflags
     NP_CFLAGS="$NP_CFLAGS $np_sanitize -fno-omit-frame-pointer -g"
     NP_LDFLAGS="$NP_LDFLAGS $np_sanitize"])
])

# NP_ACCEPT_NETPERF_OPTIONS
# Scripts that build netperf pass these; the features are all in, and chosen at run time.
AC_DEFUN([NP_ACCEPT_NETPERF_OPTIONS], [
  AC_ARG_ENABLE([demo],
    [AS_HELP_STRING([--enable-demo ...],
      [demo, burst, histogram, intervals, spin, dirty, omni, unixdomain, sctp, dccp, dlpi, xti, sdp,
       exs and cpuutil=HOW are taken, as netperf's configure takes them, and change nothing: every
       feature is in and chosen at run time])])
  m4_foreach_w([np_feature],
    [burst histogram intervals spin dirty omni unixdomain sctp dccp dlpi xti sdp exs cpuutil],
    [AC_ARG_ENABLE(np_feature)
  ])
])
