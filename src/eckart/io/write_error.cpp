#include "eckart/io/write_error.h"

#include <cerrno>
#include <system_error>

namespace eckart::detail {

std::string write_error_text(int error) {
  switch (error) {
    case ENOSPC:
      return "the disk is full";
    case EDQUOT:
      return "your disk quota is used up";
    case EFBIG:
      return "the file may not grow that large here";
    case EACCES:
    case EPERM:
      return "you have no permission to write there";
    case EROFS:
      return "the file system is read-only";
    case EMFILE:
    case ENFILE:
      return "too many files are open";
    case ENAMETOOLONG:
      return "the name is too long";
    case ELOOP:
      return "it is a symbolic link that leads back to itself";
    case EIO:
      return "the disk reports an error";
    default:
      return std::generic_category().message(error);
  }
}

std::string write_error_hint(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or write to another disk";
    case EFBIG:
      return "the limit is that of the file system or of `ulimit -f`";
    case EACCES:
    case EPERM:
    case EROFS:
      return "write to a folder of your own";
    case EMFILE:
      return "raise the limit with `ulimit -n`, or write fewer files at once";
    default:
      return {};
  }
}

}  // namespace eckart::detail
