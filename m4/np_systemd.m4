# NP_WITH_SYSTEMD
# --with-systemdsystemunitdir=DIR installs the units of doc/systemd there; "yes" asks pkg-config
# where systemd looks for them. Without it none are installed: most builds are not for a system.
AC_DEFUN([NP_WITH_SYSTEMD], [
  AC_ARG_WITH([systemdsystemunitdir],
    [AS_HELP_STRING([--with-systemdsystemunitdir=DIR],
      [install netserver's systemd units there; yes: where pkg-config says (no)])],
    [], [with_systemdsystemunitdir=no])
  AS_IF([test "$with_systemdsystemunitdir" = yes], [
    AC_MSG_CHECKING([where systemd looks for units])
    with_systemdsystemunitdir=`${PKG_CONFIG:-pkg-config} --variable=systemdsystemunitdir systemd 2> /dev/null`
    AS_IF([test -z "$with_systemdsystemunitdir"], [
      AC_MSG_RESULT([unknown])
      AC_MSG_ERROR([pkg-config knows no systemd: name the directory, as --with-systemdsystemunitdir=/lib/systemd/system])])
    AC_MSG_RESULT([$with_systemdsystemunitdir])
  ])
  AM_CONDITIONAL([NP_SYSTEMD], [test "$with_systemdsystemunitdir" != no])
  AC_SUBST([systemdsystemunitdir], [$with_systemdsystemunitdir])
])
