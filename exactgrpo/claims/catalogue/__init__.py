"""The bundled claims: `update` holds those about the update and its non-claims, `field` true and false ones about the field."""
