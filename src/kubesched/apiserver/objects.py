"""Take an object through everything between a body and the store: read, default, admit, prepare, validate.

Creates and the many ways to change an object (PUT, four kinds of patch, subresources) differ in how the new object
comes about; from there on they are one road, and this is it.  Built-in kinds follow the schema, custom resources what
their definition says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.apiserver import admission, cleaning, codec, strategy, validation_kinds, validation_metadata
from kubesched.apiserver.defaulting import apply_defaults
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.ownership import Ownership, Writer
from kubesched.apiserver.preconditions import Preconditions, check_preconditions
from kubesched.apiserver.requests import Request
from kubesched.apiserver.status import (
    ApiError,
    FieldError,
    bad_request,
    conflict,
    field_invalid,
    invalid,
)
from kubesched.apiserver.store import Store, Stored

Json = dict[str, Any]

NOBODY = Writer()


class Objects:
    """The road of every object into the store.

    Args:
        store: where objects are kept.
        rules: which optional admission is in force.
        now: the current instant in nanoseconds.
    """

    def __init__(self, store: Store, rules: admission.Rules, now: Callable[[], int]) -> None:
        self.store, self.rules, self.now = store, rules, now
        self.ownership = Ownership(now, follow_all=rules.follow_all)

    # bodies ----------------------------------------------------------------------------------------

    def read(self, request: Request, resource: Resource) -> Json:
        """Decode, check and clean the body of a create or update."""
        if resource.is_custom:
            mode = codec.field_validation(request.query)
            obj: Json = resource.definition.read(request, mode)
            return obj
        return codec.read_resource(request, resource)

    def clean_patched(self, request: Request, resource: Resource, patched: Json, strict: str) -> Json:
        """Check and clean what a patch made of an object; faults are the patch's."""
        try:
            if not isinstance(patched, dict):
                raise bad_request("the patch left no object")
            codec.check_kind(patched, resource.group_version, resource.kind)
            before = copy.deepcopy(patched) if strict == "Strict" else patched
            obj: Json
            if resource.is_custom:
                obj, problems = resource.definition.clean(patched, strict)
            else:
                obj, problems = codec.clean(patched, resource.group_version, resource.kind, resource.shape, strict)
        except ApiError as error:
            raise codec.refused_as_patch(error, patched) from None
        if problems and strict == "Strict":
            said = ", ".join(problems)
            raise codec.refused_as_patch(bad_request(f"strict decoding error: {said}"), before)
        if problems and strict == "Warn":
            codec.add_warnings(request.warnings, problems)
        return obj

    # creating --------------------------------------------------------------------------------------

    def create(
        self,
        resource: Resource,
        obj: Json,
        namespace: str,
        name: str,
        *,
        writer: Writer = NOBODY,
        dry_run: bool = False,
    ) -> Stored:
        """Store a new object that has been read; namespace and name are the URL's ("" when it has none)."""
        meta = self._place(resource, obj, namespace, name)
        if meta.get("resourceVersion", "0") in ("", "0"):
            meta.pop("resourceVersion", None)
        if resource.namespaced:
            admission.namespace_exists(self.store, resource.storage, namespace, meta.get("name", ""))
        strategy.drop_status(resource, obj)
        if resource.is_custom:
            resource.definition.fill(obj)
        else:
            apply_defaults(resource.shape, obj)
        obj = self.ownership.created(resource, obj, writer)
        if not resource.is_custom:
            cleaning.empty_to_null(obj, resource.shape)
        if resource.conversion is not None:
            obj = resource.conversion.to_stored(obj)
        meta = obj["metadata"]
        if not resource.is_custom:
            admission.admit_create(self.store, self.rules, resource, obj)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self.store.generate_name(resource.storage, namespace, meta["generateName"])
        if resource.is_custom:
            problems = resource.definition.problems(obj, None)
            self._refuse(resource, obj, validation_metadata.created(resource, meta) + problems)
        else:
            strategy.prepare_create(resource, obj, self.now())
            self._refuse(resource, obj, validation_kinds.created(resource, obj))
            admission.admit_valid(self.store, resource, obj)
        finish = strategy.label_job if resource.shape == "batch.Job" else None
        return self.store.create(
            resource.storage, obj, generation=first_generation(resource), dry_run=dry_run, finish=finish
        )

    def restore(self, resource: Resource, obj: Json) -> Stored:
        """Store an object of another cluster whole, status and uid included; it has been admitted there.

        Raises ApiError where it cannot be read, or where it is there already.
        """
        if resource.is_custom:
            obj, _ = resource.definition.clean(obj, "Ignore")
            resource.definition.fill(obj)
        else:
            obj, _ = codec.clean(obj, resource.group_version, resource.kind, resource.shape)
            apply_defaults(resource.shape, obj)
        if not obj.get("metadata", {}).get("name"):
            raise bad_request(f"a {resource.kind} without a name")
        if resource.namespaced:
            obj["metadata"].setdefault("namespace", "default")
        return self.store.restore(resource.storage, obj)

    def _place(self, resource: Resource, obj: Json, namespace: str, name: str) -> Json:
        """Make the object and the URL agree on where it is; return its metadata."""
        meta: Json = obj.setdefault("metadata", {})
        given = meta.get("namespace", "")
        if given and given != namespace and resource.namespaced:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if resource.namespaced:
            meta["namespace"] = namespace
        else:
            meta.pop("namespace", None)
        if name:
            if not meta.get("name"):
                raise bad_request(
                    f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
                )
            if meta["name"] != name:
                raise bad_request(
                    f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
                )
        return meta

    def _refuse(self, resource: Resource, obj: Json, errors: Sequence[FieldError]) -> None:
        if errors:
            raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), errors)

    # changing --------------------------------------------------------------------------------------

    def replace(
        self,
        resource: Resource,
        old: Stored,
        obj: Json,
        subresource: str = "",
        *,
        patched: bool = False,
        writer: Writer = NOBODY,
        dry_run: bool = False,
    ) -> Stored:
        """Store a new version of an object that has been read (or patched and cleaned)."""
        meta = self._place(resource, obj, old.namespace, old.name)
        self._check_identity(resource, old, meta, patched=patched, dry_run=dry_run)
        # Defaults first: what preparation takes over from the stored object is not ours to change.
        if resource.is_custom:
            resource.definition.fill(obj)
        else:
            apply_defaults(resource.shape, obj)
        obj = self.ownership.changed(resource, obj, self.view(resource, old), subresource, writer)
        if not resource.is_custom:
            cleaning.empty_to_null(obj, resource.shape)
        if resource.conversion is not None:
            obj = resource.conversion.to_stored(obj)
        errors: list[FieldError]
        if subresource in ("status", "approval"):
            strategy.prepare_status(resource, obj, old.obj, self.now())
            if resource.is_custom:
                errors = validation_metadata.changed(resource, obj["metadata"], old.obj["metadata"], "status")
                errors += resource.definition.problems(obj, old.obj)
            else:
                errors = validation_kinds.status_changed(resource, obj, old.obj)
        else:
            errors = self._change(resource, obj, old.obj, subresource)
        main = subresource not in ("status", "approval")
        self._refuse(resource, obj, errors)
        if main:
            admission.admit_valid_update(self.store, resource, obj, old.obj)
        return self.store.update(
            resource.storage,
            old.namespace,
            old.name,
            obj,
            bump=strategy.bumps_generation(resource) if main and resource.generation else False,
            removable=removable(resource),
            dry_run=dry_run,
        )

    def _change(self, resource: Resource, obj: Json, old: Json, subresource: str) -> list[FieldError]:
        """Prepare, admit and validate a change through the main resource."""
        strategy.prepare_update(resource, obj, old)
        if resource.is_custom:
            errors: list[FieldError] = validation_metadata.changed(resource, obj["metadata"], old["metadata"])
            errors += resource.definition.problems(obj, old)
            return errors
        admission.admit_update(self.store, self.rules, resource, obj, old)
        return validation_kinds.updated(resource, obj, old, subresource)

    def view(self, resource: Resource, stored: Stored) -> Json:
        """A stored object in the version of this resource."""
        return stored.obj if resource.conversion is None else resource.conversion.from_stored(stored.obj)

    def _check_identity(self, resource: Resource, old: Stored, meta: Json, *, patched: bool, dry_run: bool) -> None:
        """Refuse to write over another object or another version than the client saw.

        A patch is made of the object as it is: if it says another uid, that is a change, and no good one.
        """
        uid, version = meta.get("uid", ""), meta.get("resourceVersion", "")
        if uid and uid != old.uid and not patched:
            check_preconditions(resource.storage, old, Preconditions(uid=uid), dry_run=dry_run)
        if version in ("", "0"):
            if not resource.unconditional:
                error = field_invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid(resource.group, resource.plural, old.name, [error])
            meta.pop("resourceVersion", None)
            return
        if not (version.isascii() and version.isdigit()):
            raise ApiError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version != old.resource_version:
            raise conflict(resource.storage, old.name)


def first_generation(resource: Resource) -> int | None:
    """The generation of a new object; a CSIDriver has one as soon as its spec changes."""
    return 1 if resource.generation and resource.shape != "storage.CSIDriver" else None


def removable(resource: Resource) -> Callable[[Json], bool] | None:
    """What else than finalizers keeps an object of this kind."""
    return _namespace_is_empty if resource.shape == "core.Namespace" else None


def _namespace_is_empty(obj: Json) -> bool:
    return not (obj.get("spec") or {}).get("finalizers")


def terminating(obj: Json) -> Json:
    """A namespace that is being deleted says so, and has no grace period."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "deletionGracePeriodSeconds"}
    return {**obj, "metadata": meta, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}
