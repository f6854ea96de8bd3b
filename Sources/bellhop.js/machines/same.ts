/** Returns the old list if the new one has the same members, so that `===` shows whether anything changed. */
export function sameList<T>(old: T[], next: T[]) {
  return old.length === next.length && next.every((one, index) => one === old[index]) ? old : next;
}

/** Returns the old object if the new one has the same members; lists in them are compared by their members. */
export function same<T extends object>(old: T, next: T): T {
  const names = Object.keys(next);
  const isSame = names.length === Object.keys(old).length && names.every((name) => {
    const [one, other] = [old[name as keyof T], next[name as keyof T]];
    return Array.isArray(one) && Array.isArray(other) ? sameList(one, other) === one : Object.is(one, other);
  });
  return isSame ? old : next;
}
