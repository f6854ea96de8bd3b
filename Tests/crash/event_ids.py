"""The ids of events as the service makes them: `<epoch>-<13 digits>`. An event's number can be read only with the
database's secret (Docs/decisions/0013). The tests have it, because they have access to the database."""

import hashlib
import hmac
import random
import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
CURSOR = re.compile(r"([A-Za-z0-9]{1,44})-([0-9a-hjkmnp-tv-z]{13})")
WORD = (1 << 32) - 1
# The statement that reads the secret, in hexadecimal digits.
SECRET_SQLITE = "SELECT hex(secret) FROM service_secrets WHERE name = 'event-ids'"
SECRET_POSTGRES = "SELECT encode(secret, 'hex') FROM service_secrets WHERE name = 'event-ids'"


def rotated(word, right):
    return (word >> right | word << (32 - right)) & WORD


def round_keys(key):
    """Returns the round keys of Speck64/128, as in the paper."""
    key, *words = (int.from_bytes(key[start:start + 4], "little") for start in range(0, 16, 4))
    keys = [key]
    for number in range(26):
        words.append(((key + rotated(words[number], 8)) & WORD) ^ number)
        key = rotated(key, 29) ^ words[-1]
        keys.append(key)
    return keys


def sealed(number, keys):
    high, low = number >> 32, number & WORD
    for key in keys:
        high = ((rotated(high, 8) + low) & WORD) ^ key
        low = rotated(low, 29) ^ high
    return high << 32 | low


def opened(number, keys):
    high, low = number >> 32, number & WORD
    for key in reversed(keys):
        low = rotated(low ^ high, 3)
        high = rotated(((high ^ key) - low) & WORD, 24)
    return high << 32 | low


class EventIDs:
    """The ids of all epochs of one database."""

    def __init__(self):
        self.secret = None
        self.keys = {}

    def learn(self, secret):
        """Stores the secret as read by one of the statements above. It exists once the service has started."""
        self.secret = bytes.fromhex(secret)
        self.keys = {}

    def _keys(self, epoch):
        if epoch not in self.keys:
            code = hmac.new(self.secret, f"bellhop event ids\n{epoch}".encode(), hashlib.sha256).digest()
            self.keys[epoch] = round_keys(code[:16])
        return self.keys[epoch]

    def read(self, identifier):
        """Returns the epoch and the number; None for a malformed id. A made-up id yields an arbitrary 64-bit number."""
        parts = CURSOR.fullmatch(identifier)
        if not parts:
            return None
        bits = 0
        for digit in parts[2]:
            bits = bits << 5 | ALPHABET.index(digit)
        return None if bits >> 64 else (parts[1], opened(bits, self._keys(parts[1])))

    def text(self, epoch, number):
        bits = sealed(number, self._keys(epoch))
        return epoch + "-" + "".join(ALPHABET[bits >> shift & 31] for shift in range(60, -1, -5))


# The ids of the one database that a script uses.
IDS = EventIDs()


def forged(epoch, choices=random):
    """Returns an id that was never issued."""
    return epoch + "-" + "".join([choices.choice(ALPHABET[:16])] + [choices.choice(ALPHABET) for _ in range(12)])


# The example in the paper.
_keys = round_keys(bytes.fromhex("000102030809" "0a0b10111213" "18191a1b"))
assert sealed(0x3B7265747475432D, _keys) == 0x8C6FA548454E028B
assert opened(0x8C6FA548454E028B, _keys) == 0x3B7265747475432D
