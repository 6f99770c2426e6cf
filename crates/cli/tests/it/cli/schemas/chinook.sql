-- The shape of a shop for music: quoted names in mixed case, whole keys, prices, a join table.
CREATE TABLE "Artist" ("ArtistId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Album" ("AlbumId" integer PRIMARY KEY, "Title" varchar(160) NOT NULL, "ArtistId" integer NOT NULL REFERENCES "Artist");
CREATE TABLE "Employee" ("EmployeeId" integer PRIMARY KEY, "LastName" varchar(20) NOT NULL,
    "ReportsTo" integer REFERENCES "Employee", "BirthDate" timestamp);
CREATE TABLE "Customer" ("CustomerId" integer PRIMARY KEY, "Email" varchar(60) NOT NULL, "SupportRepId" integer REFERENCES "Employee");
CREATE TABLE "Genre" ("GenreId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "MediaType" ("MediaTypeId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "Track" ("TrackId" integer PRIMARY KEY, "Name" varchar(200) NOT NULL, "AlbumId" integer REFERENCES "Album",
    "MediaTypeId" integer NOT NULL REFERENCES "MediaType", "GenreId" integer REFERENCES "Genre",
    "Milliseconds" integer NOT NULL, "Bytes" integer, "UnitPrice" numeric(10,2) NOT NULL);
CREATE TABLE "Invoice" ("InvoiceId" integer PRIMARY KEY, "CustomerId" integer NOT NULL REFERENCES "Customer",
    "InvoiceDate" timestamp NOT NULL, "Total" numeric(10,2) NOT NULL);
CREATE TABLE "InvoiceLine" ("InvoiceLineId" integer PRIMARY KEY, "InvoiceId" integer NOT NULL REFERENCES "Invoice",
    "TrackId" integer NOT NULL REFERENCES "Track", "UnitPrice" numeric(10,2) NOT NULL, "Quantity" integer NOT NULL);
CREATE TABLE "Playlist" ("PlaylistId" integer PRIMARY KEY, "Name" varchar(120));
CREATE TABLE "PlaylistTrack" ("PlaylistId" integer REFERENCES "Playlist", "TrackId" integer REFERENCES "Track",
    PRIMARY KEY ("PlaylistId", "TrackId"));
INSERT INTO "MediaType" VALUES (1, 'file');
INSERT INTO "Track" VALUES (5, 'Fast', NULL, 1, NULL, 230619, 7, 0.99), (6, 'Slow', NULL, 1, NULL, 330619, NULL, 0.99);
INSERT INTO "Playlist" VALUES (1, 'Music');
INSERT INTO "PlaylistTrack" VALUES (1, 5);
