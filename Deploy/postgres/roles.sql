-- Creates the roles of Bellhop and its database. Run it once, as a superuser, before the first `bellhop migrate`:
--   OWNER_PASSWORD=… SERVICE_PASSWORD=… psql -v ON_ERROR_STOP=1 -d postgres -f Deploy/postgres/roles.sql
-- With compose.yaml, PostgreSQL's container runs it when the volume is new.
\getenv owner_password OWNER_PASSWORD
\getenv service_password SERVICE_PASSWORD

BEGIN;
-- Holds the privileges of the service; `bellhop migrate` grants them. It is created here so that the owner needs no
-- CREATEROLE.
CREATE ROLE bellhop_service NOLOGIN;
-- Owns the tables. Only `bellhop migrate` uses it.
CREATE ROLE bellhop_owner LOGIN PASSWORD :'owner_password';
-- The login of the replicas. It owns nothing and does not bypass row-level security.
CREATE ROLE bellhop LOGIN PASSWORD :'service_password' IN ROLE bellhop_service;
COMMIT;

CREATE DATABASE bellhop OWNER bellhop_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE bellhop FROM PUBLIC;
GRANT CONNECT ON DATABASE bellhop TO bellhop_service;

-- Large objects belong to no table, so no policy applies to them. The service does not use them.
\connect bellhop
REVOKE EXECUTE ON FUNCTION lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) FROM PUBLIC;
