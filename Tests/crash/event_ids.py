"""The ids of events as the service makes them: `<epoch>-<13 digits>`, in which only who knows the database's secret can
read an event's number (Docs/decisions/0013). Judges know it, since they have the database."""

import hashlib
import hmac
import random
import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
CURSOR = re.compile(r"([A-Za-z0-9]{1,44})-([0-9a-hjkmnp-tv-z]{13})")
WORD = (1 << 32) - 1
# What reads the secret, in hexadecimal digits.
SECRET_SQLITE = "SELECT hex(secret) FROM service_secrets WHERE name = 'event-ids'"
SECRET_POSTGRES = "SELECT encode(secret, 'hex') FROM service_secrets WHERE name = 'event-ids'"


def rotated(word, right):
    return (word >> right | word << (32 - right)) & WORD


def round_keys(key):
    """Speck64/128, as the paper has it."""
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
        """The secret as one of the statements above reads it: there is one once the service has started."""
        self.secret = bytes.fromhex(secret)
        self.keys = {}

    def _keys(self, epoch):
        if epoch not in self.keys:
            code = hmac.new(self.secret, f"bellhop event ids\n{epoch}".encode(), hashlib.sha256).digest()
            self.keys[epoch] = round_keys(code[:16])
        return self.keys[epoch]

    def read(self, identifier):
        """The epoch and the number; None for what is no id. Of an id that nobody was given, some number of 64 bits."""
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


# Of the one database that a script runs the service on.
IDS = EventIDs()


def made_up(epoch, choices=random):
    """An id that nobody was given."""
    return epoch + "-" + "".join([choices.choice(ALPHABET[:16])] + [choices.choice(ALPHABET) for _ in range(12)])


# The example of the paper.
_keys = round_keys(bytes.fromhex("000102030809" "0a0b10111213" "18191a1b"))
assert sealed(0x3B7265747475432D, _keys) == 0x8C6FA548454E028B
assert opened(0x8C6FA548454E028B, _keys) == 0x3B7265747475432D
