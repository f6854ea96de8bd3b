/// Apps import only this module.
@_exported import BellhopCalls
