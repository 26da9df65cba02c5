"""Runs a loader and saves what it gives as a .pt2 file.

Called with one argument, JSON: the loader, the file to save, the file to report to, strict, dynamic dimensions. Whatever goes
wrong is reported as JSON with the line of the loader where it did; prints of the loader go where the caller sent them.
"""

import importlib.util
import inspect
import json
import os
import sys
import traceback


class Refused(Exception):
    """What the loader gives is not what it should."""


def load(path):
    """The loader as a module; files beside it can be imported."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("loader", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["loader"] = module
    spec.loader.exec_module(module)
    return module


def split(inputs):
    """Inputs as positional and keyword arguments: (args), {kwargs}, ((args), {kwargs}), or a single value."""
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, (tuple, list)):
        if len(inputs) == 2 and isinstance(inputs[0], (tuple, list)) and isinstance(inputs[1], dict):
            return tuple(inputs[0]), inputs[1]
        return tuple(inputs), {}
    return (inputs,), {}


def model_and_inputs(module):
    """What get_model_and_inputs() returns: the model, positional arguments, keyword arguments."""
    function = getattr(module, "get_model_and_inputs", None)
    if not callable(function):
        raise Refused("defines no function get_model_and_inputs(); it should return a torch.nn.Module and its example inputs")
    found = function()
    if isinstance(found, tuple) and len(found) == 3 and isinstance(found[2], dict):
        return found[0], tuple(found[1]), found[2]
    if not isinstance(found, tuple) or len(found) != 2:
        raise Refused("get_model_and_inputs() returned %s; expected a model and its inputs" % type(found).__name__)
    return (found[0], *split(found[1]))


def dynamic_from_flags(torch, forward, args, kwargs, flags):
    """The dynamic_shapes that `x:0=batch:1..64` ask for; parameters that no flag names are static."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    shapes = {name: None for name in bound.arguments}
    dims = {}
    for flag in flags:
        name = flag["input"]
        if name not in shapes:
            raise Refused("--dynamic names %r; the inputs are %s" % (name, ", ".join(shapes)))
        if flag["name"] is None:
            dim = torch.export.Dim.AUTO
        else:
            bounds = {key: flag[key] for key in ("min", "max") if flag[key] is not None}
            dim = dims.setdefault(flag["name"], torch.export.Dim(flag["name"], **bounds))
        shapes[name] = {**(shapes[name] or {}), flag["dim"]: dim}
    return shapes


def export(torch, model, args, kwargs, shapes, options):
    """A program of the model's forward."""
    if isinstance(model, torch.export.ExportedProgram):
        return model
    if not isinstance(model, torch.nn.Module):
        raise Refused("get_model_and_inputs() gave a %s; expected a torch.nn.Module" % type(model).__name__)
    if options["dynamic"]:
        if shapes is not None:
            raise Refused("has dynamic_shapes, which --dynamic would replace; use one of them")
        shapes = dynamic_from_flags(torch, model.forward, args, kwargs, options["dynamic"])
    return torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=options["strict"])


def programs(torch, module, options):
    """Programs by name; one without a name if the loader has no methods."""
    model, args, kwargs = model_and_inputs(module)
    shapes = getattr(module, "dynamic_shapes", None)
    shapes = shapes() if callable(shapes) else shapes
    methods = getattr(module, "methods", None)
    methods = methods() if callable(methods) else methods
    if not methods:
        return {None: export(torch, model, args, kwargs, shapes, options)}
    if not isinstance(methods, dict):
        methods = {name: None for name in methods}
    found = {}
    forward = model.forward
    for name, inputs in methods.items():
        method = getattr(model, name, None)
        if not callable(method):
            raise Refused("methods names %r, which the model does not have" % name)
        own = (args, kwargs) if inputs is None else split(inputs)
        of_method = shapes.get(name) if isinstance(shapes, dict) and set(shapes) <= set(methods) else shapes
        # torch.export takes what forward is at the time.
        model.forward = forward if name == "forward" else method
        try:
            found[name] = export(torch, model, *own, of_method, options)
        finally:
            model.forward = forward
    return found


def save(torch, found, path):
    """One archive of all programs."""
    if list(found) == [None]:
        torch.export.save(found[None], path)
        return
    from torch.export.pt2_archive._package import package_pt2

    package_pt2(path, exported_programs=found)


def line_in(error, path):
    """The line of the loader that led to an error."""
    path = os.path.abspath(path)
    if isinstance(error, SyntaxError) and error.filename and os.path.abspath(error.filename) == path:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if os.path.abspath(frame.filename) == path]
    return lines[-1] if lines else None


def report(error, path):
    """An error as the caller shows it."""
    text = str(error).strip() or "no message"
    kind = None if isinstance(error, Refused) else type(error).__name__
    hint = None
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        hint = "--python names an interpreter that has PyTorch"
    return {"kind": kind, "message": text, "line": line_in(error, path), "hint": hint}


def main():
    """Does it all; the exit status is 0 or 1."""
    options = json.loads(sys.argv[1])
    path = options["loader"]
    try:
        module = load(path)
        import torch

        with torch.no_grad():
            save(torch, programs(torch, module, options), options["save"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        with open(options["report"], "w", encoding="utf-8") as file:
            json.dump(report(error, path), file)
        return 1
    return 0


sys.exit(main())
