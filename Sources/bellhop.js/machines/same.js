/** Returns the old list if the new one has the same members, so that `===` shows whether anything changed.
 * @template T
 * @param {T[]} old @param {T[]} next */
export function sameList(old, next) {
  return old.length === next.length && next.every((one, index) => one === old[index]) ? old : next;
}

/** Returns the old object if the new one has the same members; lists in them are compared by their members.
 * @template {Record<string, any>} T
 * @param {T} old @param {T} next @returns {T} */
export function same(old, next) {
  const names = Object.keys(next);
  const isSame = names.length === Object.keys(old).length && names.every((name) => {
    const [one, other] = [old[name], next[name]];
    return Array.isArray(one) && Array.isArray(other) ? sameList(one, other) === one : Object.is(one, other);
  });
  return isSame ? old : next;
}
