"""From all records to one report: counted, compared, decided."""
