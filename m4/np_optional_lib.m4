# NP_OPTIONAL_LIB(NAME, PACKAGE, FUNCTION, INCLUDES)
# Look for a library that may be missing: NAME_CFLAGS and NAME_LIBS as the user gives them, else as
# pkg-config says, else -lPACKAGE, without a "lib" that PACKAGE begins with. Sets them and the
# conditional HAVE_NAME; both are empty where there is none, or --without-PACKAGE was said. Unlike
# PKG_CHECK_MODULES this needs no pkg-config, neither where configure is made nor where it runs.
AC_DEFUN([NP_OPTIONAL_LIB], [
  AC_ARG_VAR([$1_CFLAGS], [compiler flags for $2])
  AC_ARG_VAR([$1_LIBS], [linker flags for $2])
  AC_ARG_WITH([$2], [AS_HELP_STRING([--without-$2], [do without $2])])
  AC_CHECK_PROGS([PKG_CONFIG], [pkg-config pkgconf], [false])
  if test -z "$$1_CFLAGS$$1_LIBS"; then
    $1_CFLAGS=`$PKG_CONFIG --cflags $2 2>/dev/null`
    $1_LIBS=`$PKG_CONFIG --libs $2 2>/dev/null` || $1_LIBS=-l[]m4_bpatsubst([$2], [^lib])
  fi
  AC_MSG_CHECKING([for $2])
  np_saved_cflags=$CFLAGS
  np_saved_libs=$LIBS
  CFLAGS="$CFLAGS $$1_CFLAGS"
  LIBS="$$1_LIBS $LIBS"
  np_found=no
  if test "$with_[]m4_translit([$2], [-], [_])" != no; then
    AC_LINK_IFELSE([AC_LANG_PROGRAM([$4], [[void *volatile found = (void *)$3; (void)found;]])],
      [np_found=yes])
  fi
  CFLAGS=$np_saved_cflags
  LIBS=$np_saved_libs
  AC_MSG_RESULT([$np_found])
  test "$np_found" = yes || $1_CFLAGS= $1_LIBS=
  AM_CONDITIONAL([HAVE_$1], [test "$np_found" = yes])
])
