# Attention Atlas on a CPU. Build: docker build -t attention-atlas .
# Run: docker run -p 127.0.0.1:8501:8501 -v atlas:/data attention-atlas   (docs/how-to/deploy.md: sign-in, backup, proxies)
FROM python:3.11-slim-bookworm

# torch's CPU build: a tenth of the download of the one with CUDA's libraries.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HOME=/data ATLAS_DB=/data/atlas.duckdb

RUN useradd --uid 1000 --create-home --home-dir /data atlas
WORKDIR /app
COPY requirements.txt .
RUN pip install torch==$(sed -n 's/^torch==\([^ ]*\).*/\1/p' requirements.txt) --index-url "$TORCH_INDEX" \
    && pip install -r requirements.txt
COPY --chown=root:root . .
# The user cannot write there: without this every start would compile all of it again.
RUN python -m compileall -q app.py core pages data/recipes

USER atlas
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as ask; at = os.environ.get('STREAMLIT_SERVER_BASE_URL_PATH', '').strip('/'); ask.urlopen('/'.join(filter(None, ['http://127.0.0.1:8501', at, '_stcore/health'])), timeout=4)"]
# Inside a container the server must listen on all its addresses; who is outside is *viewer* until sign-in is set up.
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501"]
