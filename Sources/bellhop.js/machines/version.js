/** Whether what is offered takes the place of what is held. A version counts within its epoch; another epoch, which
 * there is after a restore, replaces always: what was seen in the one before may never have happened.
 * @param {any} held @param {any} offered */
export function isNewer(held, offered) {
  return !held || (held.epoch ?? "") !== (offered.epoch ?? "") || offered.version > held.version;
}
