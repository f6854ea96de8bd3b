-- The roles of Bellhop and its database. Run once, by a superuser, before the first `bellhop migrate`:
--   OWNER_PASSWORD=… SERVICE_PASSWORD=… psql -v ON_ERROR_STOP=1 -d postgres -f Deploy/postgres/roles.sql
-- compose.yaml has PostgreSQL's container run it when the volume is new.
\getenv owner_password OWNER_PASSWORD
\getenv service_password SERVICE_PASSWORD

BEGIN;
-- Holds what the service may do; `bellhop migrate` grants it. It is made here so that the owner needs no CREATEROLE.
CREATE ROLE bellhop_service NOLOGIN;
-- Owns the tables, and is used by `bellhop migrate` only.
CREATE ROLE bellhop_owner LOGIN PASSWORD :'owner_password';
-- What the replicas log in with: it owns nothing and does not bypass row-level security.
CREATE ROLE bellhop LOGIN PASSWORD :'service_password' IN ROLE bellhop_service;
COMMIT;

CREATE DATABASE bellhop OWNER bellhop_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE bellhop FROM PUBLIC;
GRANT CONNECT ON DATABASE bellhop TO bellhop_service;
