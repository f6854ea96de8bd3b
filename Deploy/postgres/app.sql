-- The app's database of compose.source.yaml: its table, and the role that reads its log.
\getenv app_password APP_PASSWORD

BEGIN;
CREATE TABLE todos (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id text NOT NULL,
    title text NOT NULL,
    done boolean NOT NULL DEFAULT false
);
-- Includes the owner of a deleted row in the log.
ALTER TABLE todos REPLICA IDENTITY FULL;
-- `bellhop source setup --role bellhop_reader` grants it SELECT on the tables of its file and on bellhop.secret, and
-- nothing else.
CREATE ROLE bellhop_reader LOGIN REPLICATION PASSWORD :'app_password';
COMMIT;
