// version.h - the version of this build.
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define OX_VERSION "0.1.0"

#endif
