//! What differs between systems: owners and permissions of files, and replacing a file that others read.
//!
//! Each system has the same items.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    Owner, copy_owner, is_of_same_user, is_same_file, make_private, owner, private_folder_builder, replace,
    set_private_folder,
};
#[cfg(windows)]
pub(crate) use windows::{
    Owner, copy_owner, is_of_same_user, is_same_file, make_private, owner, private_folder_builder, replace,
    set_private_folder,
};
