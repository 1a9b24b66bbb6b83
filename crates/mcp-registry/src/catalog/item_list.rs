//! One list of a catalog: the exposed items of all servers in order. Each server keeps its items, so a catalog shares
//! them with the next one.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::catalog::server_slice::ServerSlice;

/// The exposed items of one list, in order. Cheap to copy.
pub struct ItemList<'a, T> {
    pub(super) slices: &'a [Arc<ServerSlice>],
    /// The position of the first item of each slice, and the number of items.
    pub(super) starts: &'a [usize],
    /// The items of a slice.
    pub(super) items: fn(&ServerSlice) -> &[T],
}

impl<'a, T> ItemList<'a, T> {
    /// Returns the number of items.
    pub fn len(self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    /// Returns whether there are no items.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the slice that has the item at a position, and the item's position in the slice.
    pub fn locate(self, at: usize) -> Option<(&'a Arc<ServerSlice>, usize)> {
        let slice = self.starts.partition_point(|start| *start <= at).checked_sub(1)?;
        Some((self.slices.get(slice)?, at - self.starts[slice]))
    }

    /// Returns the item at a position.
    pub fn get(self, at: usize) -> Option<&'a T> {
        let (slice, at) = self.locate(at)?;
        (self.items)(slice).get(at)
    }

    /// Returns the first item.
    pub fn first(self) -> Option<&'a T> {
        self.get(0)
    }

    /// Returns the items in order.
    pub fn iter(self) -> ItemIter<'a, T> {
        ItemIter { list: self, slices: self.slices.iter(), current: [].iter(), remaining: self.len() }
    }
}

impl<T> Clone for ItemList<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ItemList<'_, T> {}

impl<T> Index<usize> for ItemList<'_, T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        self.get(at).expect("the position is in the list")
    }
}

impl<'a, T: 'a> IntoIterator for ItemList<'a, T> {
    type Item = &'a T;
    type IntoIter = ItemIter<'a, T>;

    fn into_iter(self) -> ItemIter<'a, T> {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for ItemList<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for ItemList<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for ItemList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl<T: Serialize> Serialize for ItemList<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(*self)
    }
}

/// The iterator of [`ItemList::iter`].
#[derive(Clone)]
pub struct ItemIter<'a, T> {
    list: ItemList<'a, T>,
    slices: slice::Iter<'a, Arc<ServerSlice>>,
    current: slice::Iter<'a, T>,
    remaining: usize,
}

impl<'a, T> Iterator for ItemIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.current.next() {
                self.remaining -= 1;
                return Some(item);
            }
            self.current = (self.list.items)(self.slices.next()?).iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl<T> ExactSizeIterator for ItemIter<'_, T> {}

impl<T> FusedIterator for ItemIter<'_, T> {}
