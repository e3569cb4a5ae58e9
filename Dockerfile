# Verifies the library on a CUDA device in software; no GPU is needed:
#   docker build --tag gpubench . && docker run --rm gpubench
FROM python:3.13-slim

# The CUDA device in software compiles kernels with the C compiler of the system.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc git libc6-dev \
    && rm -rf /var/lib/apt/lists/*

COPY . /tmp/source
RUN pip install --no-cache-dir /tmp/source/softcuda "/tmp/source[cuda]" && rm -rf /tmp/source

RUN useradd --create-home gpubench
USER gpubench
WORKDIR /home/gpubench

ENTRYPOINT ["gpubench"]
CMD ["verify", "--library", "vector_add"]
